"""ReST-RL's responses that start from the beginning of a good one."""
