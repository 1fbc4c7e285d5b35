"""Phases: agents that play and agents that decide train in turns (Iterative-SPO)."""
