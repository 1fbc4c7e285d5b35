"""What a command runs from start to end: a policy, a reward model, a ladder, PRMs for code."""
