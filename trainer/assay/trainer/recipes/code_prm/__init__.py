"""Process supervision for code by one command (arXiv 2410.17621): `assay code-prm`.

config     the settings of the whole
problems   problems of our own, with tests and solutions; pure
rows       from samples to programs, from labels to rows of a PRM; pure
stages     which stages there are, what each is asked, and whether its output is whole
sampling   responses of a checkpoint
running    the child processes of the stages, and what they cost
commands   `assay code-prm`
"""
