"""Reads a journal of verdicts; `assay.reward_server.journal` writes it."""
