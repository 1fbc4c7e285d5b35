"""What the adapters of trainers share; each trainer's own module stands beside this package.

`faults`: what becomes of a sample without a judgement. `rows`: from a trainer's row to an item.
`settings`: from a trainer's options and the environment to a client, one for each process.
"""
