"""Rows of data sets as what a server takes; the cli, the trainer and genrm read them alike.

items        one row of JSON -> one `Item`
tests        the shapes in which files write the tests of a program
preferences  pairs, points and steps about which judges are asked, and from which they learn
"""
