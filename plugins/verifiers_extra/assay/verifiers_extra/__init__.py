"""Verifiers that few need: instructions, languages, puzzles, geometry, science."""
