"""The verdict journal: what the server said of each item, in a local SQLite file, for people.

`entries` makes an entry of a settled item (pure), `store` keeps entries in a bounded file,
`writer` does so beside the scoring and never in its way, `reader` and `comparison` ask a file,
`command` is `assay journal`. What is kept, and what it costs: docs/journal.md; why SQLite: ADR 16.
"""
