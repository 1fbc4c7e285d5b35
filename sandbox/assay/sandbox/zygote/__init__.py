"""What runs inside a box.

The process that forks programs, and what confines them. Standard library only; never imports the
supervisor's side.
"""
