"""Runs verifiers of unbounded cost in worker processes that can be killed (the kit's pool).

parcels.py the quick work of large batches, many items a frame
place.py   where the workers are: on this machine, or on a Ray cluster
codec.py   an item's frame, and the fault of each way a job ends
work.py    what a worker does: judges an item, or looks at a parcel of them
wire.py    items and outcomes as JSON
"""
