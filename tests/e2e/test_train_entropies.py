"""Kept entropies are those of the weights that a step began with, each at its own token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.kit.runs.rollouts import read_rollouts, read_vocabulary

STILL = 1e-30  # a learning rate that moves no weight


def entropies(model: Any, prompt: list[int], ids: list[int]) -> list[float]:
    """Of each token of a response, by one pass over this response alone."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
    logps = logits.log_softmax(dim=-1)
    return [float(value) for value in -(logps.exp() * logps).sum(dim=-1)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sections",
    [
        {"optim": {"mini_batches": 4, "epochs": 2, "micro_batch": 3}},
        {"optim": {"micro_batch_tokens": 60}, "rollout": {"max_new_tokens": 7}},
        {
            "method": {"asynchrony": {"mode": "periodic"}},
            "optim": {"micro_batch": 16},
            "rollout": {"batch": 16},
        },
    ],
    ids=["mini-batches", "packed", "in-parts"],
)
def test_an_entropy_is_the_tokens_own(
    tiny_config: Callable[..., Any],
    train: Callable[..., Any],
    tiny_model: Path,
    tmp_path: Path,
    sections: dict[str, dict[str, Any]],
) -> None:
    from transformers import AutoModelForCausalLM

    given = {
        **sections,
        "optim": {**sections.get("optim", {}), "learning_rate": STILL},
        "eval": {"prompts": 0},
        "run": {"steps": 2},
    }
    (first, _) = train(tiny_config(**given), "run")
    load: Any = AutoModelForCausalLM.from_pretrained
    model = load(tiny_model).eval()
    rows = list(read_rollouts(tmp_path / "run", phase="train"))
    assert len(rows) == 2 * 64
    seen: list[float] = []
    for row in rows:
        expected = entropies(model, row["prompt_ids"], row["ids"])
        trained = {place for start, end in row["trained"] for place in range(start, end)}
        assert len(row["entropies"]) == len(row["ids"])
        for place, value in enumerate(row["entropies"]):
            assert (value is not None) == (place in trained)
            if value is not None:
                assert value == pytest.approx(expected[place], abs=2e-3)
                seen += [value] if row["step"] == 1 else []
    assert max(seen) - min(seen) > 0.1  # a row mistaken for another would show
    assert sum(seen) / len(seen) == pytest.approx(first["entropy"], abs=2e-3)


def test_they_can_be_left_out_and_tokens_are_read_without_a_tokenizer(
    tiny_config: Callable[..., Any], train: Callable[..., Any], tmp_path: Path
) -> None:
    settings = {"eval": {"prompts": 0}, "run": {"steps": 1, "entropies": False}}
    train(tiny_config(**settings), "run")
    pieces = read_vocabulary(tmp_path / "run")
    assert pieces is not None
    for row in read_rollouts(tmp_path / "run"):
        assert row["entropies"] is None
        plain = [number for number in row["ids"] if number not in pieces.special]
        assert "".join(pieces.texts(plain)) == row["response"]
