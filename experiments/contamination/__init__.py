"""Self-Critique (arXiv 2510.09259) on a planted set."""
