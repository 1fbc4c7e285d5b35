"""Verifiers of text: choices, matches, overlap, rankings, patterns, structured output."""
