"""Laws of the hacking gap: what gold judged counts, and what it did not is missing, not 0."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Judgement, Result
from assay.clients.faults import make_fault
from assay.kit.reasons import Reason
from assay.trainer.methods.gold.method import gap_numbers, gap_rows
from assay.trainer.records.report import hacking_gap

rewards = st.sampled_from([0.0, 0.5, 1.0])


def result(reward: float | None) -> Result:
    if reward is None:
        return Result("", make_fault(Reason.WORKER_DIED, "told to"))
    verdict = "correct" if reward == 1 else "incorrect"
    return Result("", Judgement(reward=reward, verdict=verdict))


pairs = st.lists(st.tuples(rewards, st.none() | rewards), max_size=12)


@given(pairs)
def test_faults_of_gold_are_missing_and_in_no_mean(told: list[tuple[float, float | None]]) -> None:
    found = gap_numbers(gap_rows([result(a) for a, _ in told], [result(b) for _, b in told]))
    both = [(a, b) for a, b in told if b is not None]
    if not told:
        assert found == {}
        return
    assert found["gold_missing"] == pytest.approx(1 - len(both) / len(told))
    without = gap_numbers(gap_rows([result(a) for a, _ in both], [result(b) for _, b in both]))
    assert {**found, "gold_missing": 0} == ({**without, "gold_missing": 0})
    if both:
        assert found["gold_gap"] == pytest.approx(found["gold_proxy"] - found["gold_reward"])
        assert found["gold_proxy"] == pytest.approx(np.mean([a for a, _ in both]))
        accepted = [b for a, b in both if a == 1]
        assert found.get("gold_refused") == (
            pytest.approx(np.mean([b != 1 for b in accepted])) if accepted else None
        )


@given(st.lists(rewards, min_size=1))
def test_a_verifier_is_no_gap_from_itself(told: list[float]) -> None:
    found = gap_numbers(gap_rows(list(map(result, told)), list(map(result, told))))
    assert found["gold_gap"] == 0
    assert not found.get("gold_refused")


def test_the_report_compares_the_first_steps_with_the_last() -> None:
    def row(step: int, proxy: float, gold: float) -> dict[str, float]:
        return {"step": step, "gold_proxy": proxy, "gold_reward": gold, "gold_gap": proxy - gold}

    rows = [row(n, n / 10, 0.25) if n % 2 else {"step": n} for n in range(1, 17)]
    found = hacking_gap(rows)
    assert found is not None
    assert found["first"] == {
        "steps": [1, 3], "proxy": pytest.approx(0.2), "reward": 0.25, "gap": pytest.approx(-0.05),
    }  # fmt: skip
    assert found["last"]["steps"] == [13, 15]
    assert found["change"] == pytest.approx(1.2)
    assert hacking_gap([{"step": 1}]) is None
