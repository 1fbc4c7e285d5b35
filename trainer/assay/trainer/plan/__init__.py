"""What a run will need, told before anything is loaded."""
