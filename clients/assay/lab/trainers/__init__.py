"""Trainers as contestants of the lab. Each module imports its trainer when it is asked to step."""
