"""Puzzle states: arithmetic with given numbers, sudoku, and all of reasoning-gym's data sets."""
