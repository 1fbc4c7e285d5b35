"""Rows of data sets as the command, the trainer and genrm read them.

items        one row of JSON -> one `Item`
tests        the shapes in which files write the tests of a program
preferences  pairs, points and steps, to measure judges and to train them
"""
