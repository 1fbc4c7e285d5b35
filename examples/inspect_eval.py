"""An eval by Inspect (0.3) that is scored by a reward server.

    assay up                                # in a checkout; serves on 127.0.0.1:50051
    pip install ./protos ./kit ./clients    # there, into Inspect's environment
    inspect eval examples/inspect_eval.py --model openai/gpt-4o-mini

A sample that nobody can judge is unscored: in the log, and in no metric.

Run in `make test-adapters`: this task, by Inspect, with its mock model, against a real server.
`make test` has no Inspect, and only reads the file.
"""

from __future__ import annotations

import os

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate

from assay.clients.trainers.inspect_ai import assay

ASKED = "What is {} + {}? Answer in \\boxed{{}}."


@task
def sums() -> Task:
    """Sums of two digits."""
    pairs = [(2, 2), (3, 4), (9, 9)]
    return Task(
        dataset=[Sample(input=ASKED.format(a, b), target=str(a + b)) for a, b in pairs],
        solver=generate(),
        scorer=assay(os.environ.get("ASSAY_TARGET", "127.0.0.1:50051"), task="math"),
    )
