"""The lab: what a trainer learns when its reward server fails.

Real trainers take one step on a fixed batch whose rewards come from a real server that follows a
script of failures. The oracle is the step of the same trainer without the rows that were never
judged. `assay lab` runs it; docs/trainers/lab.md has the matrix.

    scripts     the failures, as data, and the server that follows them
    steps       the batch, and the step that a trainer takes
    verdicts    what a step is beside the oracle's: a colour and a sentence
    running     one trainer through the scripts, in a process of its own
    report      the table, as JSON and for the documentation
    trainers    the contestants; others come by the entry points `assay.lab`
"""
