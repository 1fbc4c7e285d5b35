"""What runs inside a box: the process that forks programs, and what confines them.

Imports only the standard library, and nothing of the supervisor's side.
"""
