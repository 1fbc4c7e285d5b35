"""Which judged responses train: PROF, the spread of a group, SimpleTIR's void turns."""
