"""Measures a judge on rows with a known answer. Pure.

rows     the questions of a row, and its line of output
sheet    the questions of a file, and whether a service can answer them
tallies  counts over the lines, by subset
"""
