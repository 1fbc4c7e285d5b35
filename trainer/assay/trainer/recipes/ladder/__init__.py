"""`assay ladder`: the same training with parts switched on or off, over seeds, side by side.

plan       a ladder file becomes the settings of every run
processes  one run in a process of its own
climb      all runs, one after the other or a few at a time, and the outcome
outcome    what a run left behind, as numbers
stats      means over seeds with intervals
table      the comparison: for programs, for people
plot       the curves, one panel a metric
"""
