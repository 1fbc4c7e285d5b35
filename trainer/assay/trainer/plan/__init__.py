"""The memory that a run will need, before anything is loaded."""
