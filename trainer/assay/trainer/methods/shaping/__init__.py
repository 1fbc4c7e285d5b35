"""Penalties and bonuses on the reward of a judged response."""
