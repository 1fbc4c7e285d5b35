"""What a command runs from start to end: a training, a ladder of ablations, the process reward model for code."""
