"""What training runs have in common, whatever they train.

agreement     of several judges: kappa, alpha
bootstrap     intervals of figures that are no proportion
checkpoints   published whole by one rename, verified before use
drift         errors that have become more frequent, noticed at any time
environment   quiet libraries, an allocator that suits large tensors
interrupt     Ctrl-C and SIGTERM: the step in progress ends first
provenance    versions, commit, command line, machine
records       files of one JSON object per line that survive a kill
stats         intervals and tests of proportions, pass@k, majorities
"""
