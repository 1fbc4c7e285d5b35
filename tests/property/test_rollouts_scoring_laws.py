"""One invariant over all: judgements and faults are as many as the responses, each its own."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import refuse
from assay.kit.reasons import Reason
from assay.trainer.rollouts.scoring import BackgroundClient
from rollouts_scoring_support import (
    QUICK,
    WrittenTransport,
    judge_over,
    judged,
    request,
    response,
)

ACTS = ["judge", "judge", "judge", "drop", "twice", "stray", "break", "fail", "end"]


class Unruly(WrittenTransport):
    """Does to each chunk what the script says next, and judges when it has run out."""

    def __init__(self, script: list[str]) -> None:
        super().__init__(self._act)
        self._script = list(script)
        self.judged: set[str] = set()

    def _act(self, _stream: int, items: Any) -> list[reward_pb2.Result]:
        act = self._script.pop(0) if self._script else "judge"
        if act == "break":
            raise refuse(Reason.DRAINING, "told to")
        if act == "fail":
            raise refuse(Reason.INTERNAL, "told to")
        if act == "drop":
            items = items[1:]
        results = [judged(item) for item in items]
        self.judged.update(item.id for item in items)
        if act == "twice":
            results += results
        if act == "stray":
            results.insert(0, reward_pb2.Result(id="nobody"))
        return results


@given(
    st.lists(st.sampled_from(ACTS), max_size=6),
    st.lists(st.booleans(), max_size=12),
    st.sampled_from([0, 1, 3]),
    st.integers(1, 4),
)
@settings(max_examples=60)
def test_every_response_gets_one_result_in_order(
    script: list[str], right: list[bool], group_size: int, pause: int
) -> None:
    """Also of groups that never become whole; what was judged is never a fault, nor otherwise."""
    transport = Unruly([act for act in script if act != "end"])
    with BackgroundClient("here", config=QUICK, transport=lambda: transport) as client:
        judge = judge_over(client, judges_groups=group_size > 0)
        with judge.open_round(group_size) as scoring:
            for number, yes in enumerate(right):
                scoring.submit(
                    request(number // max(group_size, 1), number), response("1" if yes else "0")
                )
                if number % pause == 0:
                    client.list_verifiers()  # lets the stream take what is there
            results = scoring.results()
    assert [result.id for result in results] == [str(number) for number in range(len(right))]
    for result, yes in zip(results, right, strict=True):
        if result.judgement is not None:
            assert result.id in transport.judged
            assert result.reward == float(yes)
        else:
            assert result.fault is not None
            assert result.reward is None
            assert result.id not in transport.judged or result.fault.reason == "INTERNAL"
    if not script:
        whole = len(right) - (len(right) % group_size if group_size else 0)
        assert [result.fault is None for result in results] == [
            number < whole for number in range(len(right))
        ]
