"""Boxes, points, counts and differences: what a vision model says about where things are."""
