"""Pairwise-RL: rewards that are probabilities of beating another response."""
