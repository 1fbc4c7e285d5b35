"""What a command runs from start to end: a training, a ladder of ablations, a PRM for code."""
