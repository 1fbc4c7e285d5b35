"""Holds a program's answers against the expected ones, in a process that no candidate enters."""
