"""FIRE: the first token of each response from a flat distribution."""
