"""The viewer: runs and journals of verdicts, over one index, on one set of pages.

`sources` finds what a path holds, `index` keeps narrow rows of it, `queries` ask them, `items`
reads a whole item from its source, `notes` keeps what people say of items; `api` answers for all of
them, without HTTP. `assay view` and the reward server's /journal/ are its faces. Why one index:
ADR 39.
"""
