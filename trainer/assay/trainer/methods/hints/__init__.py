"""GHPO: the beginning of the solution where nobody was right."""
