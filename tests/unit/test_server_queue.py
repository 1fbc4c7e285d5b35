"""The cache of judgements, the settings."""

from __future__ import annotations

import pytest

from assay.kit.batch.requests import answer_by_s
from assay.kit.batch.sharing import OutcomeCache
from assay.kit.errors import ConfigError
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import Candidate, Component, Fault, Judgement, VerifierItem
from assay.reward_server.equality import is_small, item_key
from assay.reward_server.verifiers.math import MathVerifier

SPEC = MathVerifier().spec


def test_the_cache_keeps_what_was_used_last() -> None:
    cache = OutcomeCache(2, is_small)
    judgement = Judgement.composed("correct", (Component("c", 1.0),))
    cache.put(b"1", judgement)
    cache.put(b"2", judgement)
    assert cache.get(b"1") is judgement
    cache.put(b"3", judgement)
    assert cache.get(b"2") is None
    assert cache.get(b"1") is judgement
    cache.put(b"4", Judgement.composed("correct", (), extracted_answer="x" * 10_001))
    cache.put(b"5", Fault("ITEM_TIMEOUT", "a fault is never kept"))
    assert cache.get(b"4") is cache.get(b"5") is None
    nothing = OutcomeCache(0)
    nothing.put(b"1", judgement)
    assert nothing.get(b"1") is None


def test_items_are_equal_when_the_verifier_sees_the_same() -> None:
    parameters = SPEC.complete({})
    base = VerifierItem(Candidate("a"), references=("b",), parameters=parameters)
    key = item_key(SPEC, base)
    same = VerifierItem(Candidate("a"), references=("b",), parameters=parameters, group_id="g")
    assert item_key(SPEC, same) == key
    others = [
        VerifierItem(Candidate("b"), references=("b",), parameters=parameters),
        VerifierItem(Candidate("a"), references=("b", ""), parameters=parameters),
        VerifierItem(
            Candidate("a"), references=("b",), parameters=SPEC.complete({"format_weight": 1})
        ),
        VerifierItem(Candidate("a"), references=("b",), parameters=parameters, truncated=True),
    ]
    assert len({key, *(item_key(SPEC, item) for item in others)}) == 5


@pytest.mark.parametrize(
    "setting",
    [
        {"workers": -1},
        {"queue_items": 0},
        {"queue_mb": 1},
        {"item_timeout_s": 0.0},
        {"item_timeout_s": 700.0},
        {"item_timeout_s": float("nan")},
        {"max_item_timeout_s": float("inf")},
        {"worker_memory_mb": 10},
        {"worker_items": 0},
        {"worker_growth_mb": 0},
        {"cache_entries": -1},
    ],
)
def test_a_wrong_setting_is_named(setting: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(setting)).replace("_", "-")):
        ScorerConfig(**setting)  # type: ignore[arg-type]  # wrong on purpose


def test_the_batch_limit_never_exceeds_the_queue() -> None:
    assert ScorerConfig(queue_items=10).max_batch_items == 10
    assert ScorerConfig().max_batch_items == 1024
    assert ScorerConfig().worker_count >= 1


@pytest.mark.parametrize("timeout_s", [0.0, 0.01, 1.0, 60.0, 1e6])
def test_the_answer_comes_before_the_deadline(timeout_s: float) -> None:
    assert 100.0 + timeout_s / 2 <= answer_by_s(100.0, timeout_s) <= 100.0 + timeout_s
