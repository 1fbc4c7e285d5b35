"""Rollouts that are drawn while the policy learns: AReaL, periodic asynchrony."""
