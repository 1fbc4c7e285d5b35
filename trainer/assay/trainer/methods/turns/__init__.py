"""Responses of several turns: PAG, SCoRe, direct multi-turn."""
