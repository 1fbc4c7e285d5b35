"""An environment of `verifiers` (0.1 to 0.3) whose rubric is a reward server.

    assay up                                # in a checkout; serves on 127.0.0.1:50051
    pip install ./protos ./kit ./clients    # there, into the environment's environment
    vf-eval ...                             # with this file as the environment's module

Do not pass a reward function to `vf.Rubric` in its place: a rubric makes 0.0 of what it raises. For
`verifiers.v1` and prime-rl there is `verifiers_v1.toml` beside this, and no code.

Run in `make test-adapters`: this environment, by verifiers, with its own client and a policy that
says what it is told to, against a real server. `make test` has no verifiers, and only reads the
file.
"""

from __future__ import annotations

import os

import verifiers as vf
from datasets import Dataset

from assay.clients.trainers.verifiers_rubric import AssayRubric


def load_environment() -> vf.Environment:
    """Sums of two digits, as verifiers asks for an environment."""
    pairs = [(a, b) for a in range(10) for b in range(10)]
    rows = [{"question": f"What is {a} + {b}?", "answer": str(a + b)} for a, b in pairs]
    target = os.environ.get("ASSAY_TARGET", "127.0.0.1:50051")
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows), rubric=AssayRubric(target=target, task="math")
    )
