"""Verdicts.

How a program's answers are held against the expected ones, in a process that the candidate never
enters.
"""
