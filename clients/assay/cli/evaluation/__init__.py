"""How good a judge is: rows with a known answer, held against what the judge says. Pure.

rows     what a row of a file asks a judge, and what is written for it
sheet    the questions of a file, and whether a service can be asked them
tallies  what is counted over the rows, by subset
"""
