"""Verifiers of form: structure, length, repetition, language, steps."""
