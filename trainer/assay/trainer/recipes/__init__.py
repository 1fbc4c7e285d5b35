"""What a command runs: a policy's training, a reward model's, a ladder, PRMs for code."""
