"""Jupyter's kernels, over sessions."""
