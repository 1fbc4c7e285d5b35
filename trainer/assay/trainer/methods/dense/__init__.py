"""Rewards within a response: of steps, lines, turns."""
