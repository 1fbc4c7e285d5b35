"""Piston's endpoints, over the sandbox."""
