"""Verifiers with unbounded cost, on the kit's process pool: workers that can be killed.

place.py   where the workers are: on this machine, or on a Ray cluster
codec.py   what the server says about its jobs: an item's frame, and which fault an end is
work.py    what a worker does: judges one item at a time
wire.py    items and outcomes as JSON
"""
