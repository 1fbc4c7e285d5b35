"""Claims of papers, each with the run that could show it: `python -m experiments --help`."""
