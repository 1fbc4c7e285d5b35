"""RoRecomp: short right and long wrong responses first."""
