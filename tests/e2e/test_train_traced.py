"""A run with traces: each step is one, from the trainer to the run's own reward server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from assay.kit import tracing
from tracing_support import Tree, collecting

STREAM = "assay.api.reward.v1.RewardService/StreamScore"


@pytest.mark.slow
def test_each_step_is_a_trace_down_to_the_items(
    tiny_config: Callable[..., Any],
    train: Callable[..., list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(
        run={"steps": 2},
        rollout={"prompts_per_step": 2, "group_size": 2},
        eval={"prompts": 0},
    )
    with collecting() as (collector, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        try:
            train(config, transport=None)
        finally:
            tracing.close()
    steps = [span for span in collector.spans if span.name == "step"]
    assert [step.facts["assay.step"] for step in steps] == [1, 2]
    assert len({step.trace for step in steps}) == 2
    for step in steps:
        tree = Tree(collector.of(step.trace))
        below = [span.name for span in tree.below(step)]
        assert sorted(below) == ["generate", "scoring", "wait for judgements"]
        [served] = tree.named(STREAM, "reward_server")
        above = [("trainer", STREAM), ("trainer", "scoring"), ("trainer", "step")]
        assert tree.above(served) == above
        assert served.facts["assay.items"] == tree.one("scoring").facts["assay.items"] == 4
        items = tree.named("item exact", "reward_server")
        assert [tree.above(item)[0] for item in items] == [("reward_server", STREAM)] * 4
