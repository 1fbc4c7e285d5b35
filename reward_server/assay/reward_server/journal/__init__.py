"""The verdict journal: the server's answer for each item, in a local SQLite file, for people.

`entries` makes an entry of a settled item (pure), `store` keeps entries in a bounded file, `writer`
fills it beside the scoring, `assay.viewer.journals` reads it, `command` is `assay journal`. What is
kept, and what it costs: docs/operate/journal.md; why SQLite: ADR 16.
"""
