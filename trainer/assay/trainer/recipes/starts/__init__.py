"""ReST-RL's choice of prompts and beginnings to train from."""
