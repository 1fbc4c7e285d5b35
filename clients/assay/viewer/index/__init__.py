"""One index over all sources: a narrow row for each rollout and verdict; texts stay where they are.

`schema` has its tables, `narrow` makes rows of rollouts, `copying` those of a journal, `searching`
finds texts, `builder` does all of it in a thread.
"""
