"""Pairwise-RL: rewards that are chances of beating another response."""
