"""The common parts of the adapters.

`faults`: policies for a sample without a judgement. `labels`: what an item is found by. `rows`: a
trainer's row as an item. `settings`: a trainer's options and the environment as a client, one for
each process.
"""
