"""The methods, a folder for each: its settings, its declaration, and its hooks.

Declarations import no torch, so that `--explain` and refusals are fast.
"""
