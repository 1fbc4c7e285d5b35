"""Questions to the index: a filter of an address becomes SQL, and the answer plain data. Pure.

`filters` reads an address; `lists`, `facets`, `curves`, `groups` and `comparing` ask.
"""
