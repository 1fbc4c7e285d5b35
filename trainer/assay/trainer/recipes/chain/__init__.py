"""Runs one after the other, each from what those before it left."""
