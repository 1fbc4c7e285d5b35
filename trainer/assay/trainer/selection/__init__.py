"""What to train on: which problem comes next, which responses stay, which come again."""
