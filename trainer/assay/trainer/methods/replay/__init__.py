"""VL-Rethinker's replay of groups."""
