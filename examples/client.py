"""Rewards from a reward server in plain Python: a judgement, or a fault that says why not.

    assay up                        # in a checkout; serves on 127.0.0.1:50051
    python examples/client.py

Run in the tests as it stands, against a real server.
"""

from __future__ import annotations

import os

from assay.clients import Item, RewardClient

TARGET = os.environ.get("ASSAY_TARGET", "127.0.0.1:50051")

items = [
    Item(r"so it is \boxed{\frac{1}{2}}", reference="0.5", task="math"),
    Item(r"so it is \boxed{\frac{1}{3}}", reference="0.5", task="math"),
    Item(r"so it is \boxed{\frac{1}{2}}", reference=" ", task="math"),
    Item("Paris", reference=["Paris", "paris"], verifier="exact"),
]
with RewardClient(TARGET) as client:
    for result in client.score(items):
        if result.fault:
            print(f"no judgement: {result.fault.reason}")
        else:
            print(result.reward, result.judgement.verdict)
