"""What runs in the same process as a program.

Standard library only: it is loaded by an interpreter without site-packages.
"""
