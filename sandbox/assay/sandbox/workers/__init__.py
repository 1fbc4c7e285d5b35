"""Supervisors on the kit's process pool: one for each slot, one job at a time.

place.py   where the supervisors are: on this machine, or on a Ray cluster
codec.py   their jobs' frames and faults
kinds.py   the kinds of jobs; loaded in supervisors
"""
