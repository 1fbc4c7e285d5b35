"""Labels for lines of programs: process supervision for code (arXiv 2410.17621).

tasks       rows in, prefixes and labelled rows out; pure
labeller    the search for the longest feasible prefix: samples of the policy, run in the sandbox
commands    `assay label-code`
"""
