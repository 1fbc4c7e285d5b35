"""Rollouts drawn while the policy learns: AReaL, periodic asynchrony."""
