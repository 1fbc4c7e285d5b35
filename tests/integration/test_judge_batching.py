"""The peer of `bench judge-batching` answers what the embedded engine answers, and shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.continuous_batching import ContinuousLoop

from genrm_engine_support import Worker
from genrm_support import make_model


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 4])
def test_both_loops_answer_alike(tmp_path: Path, rows: int) -> None:
    worker = Worker(make_model(tmp_path / "model"), "generative", prefix_cache_tokens=2048)
    shared = tuple(range(20, 120))
    plain = {"max_tokens": 6, "top_p": 1.0, "stop": ()}
    jobs: list[dict[str, Any]] = [
        {"kind": "choose", "ids": (*shared, 9 + n), "options": [(5,), (6, 7), (6, 8, 9)]}
        for n in range(5)
    ]
    jobs += [
        {"kind": "write", "ids": (*shared, 9), "temperature": chance, "seed": n, **plain}
        for n, chance in enumerate([0.0, 1.0, 1.0])
    ]
    ours = worker.ask(jobs)
    theirs: dict[int, dict[str, Any]] = {}
    loop = ContinuousLoop(
        worker.network,
        worker.settings(),
        worker.network.end_tokens(worker.tokenizer),
        worker.encoder.decode,
        lambda answers, _: theirs.update({answer["id"]: answer for answer in answers}),
        rows=rows,
    )
    worker.network._picked = None
    loop.inbox.put({"ask": [{"id": n, **job} for n, job in enumerate(jobs)]})
    for _ in range(200):
        loop.turn()
        if len(theirs) == len(jobs):
            break
    for n, answer in enumerate(ours):
        assert theirs[n].get("text") == answer.get("text")
        assert theirs[n].get("logprobs", ()) == pytest.approx(answer.get("logprobs", ()), abs=1e-4)
    assert sum(answer["cached"] >= 96 for answer in theirs.values()) >= len(jobs) - 1
