"""What to train on: which problem comes next."""
