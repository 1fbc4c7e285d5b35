"""The common parts of the adapters.

`contact`: what the first call meets. `faults`: policies for a sample without a judgement.
`fault_ratio`: the end of a run with too many of them. `labels`: what an item is found by. `rows`: a
trainer's row as an item. `settings`: a trainer's options and the environment as a client, one for
each process.
"""
