"""Pivots: the turns of good trajectories at which a policy still differs (PivotRL)."""
