"""The stream of prompts and the dealing of work: messages, limits, what is saved."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from assay.kit.errors import ConfigError
from assay.trainer.rollouts import prompts
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import AccelerateRanks, deal
from assay.trainer.rollouts.types import OneRank
from rollouts_collecting_support import encode, problems, stream


def test_a_draw_is_its_number_its_problem_and_its_prompt() -> None:
    first, second = stream(3).take(2)
    assert (first.number, second.number) == (0, 1)
    assert first.prompt_ids == tuple(encode(first.problem))
    assert first.problem != second.problem


def test_no_problems_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no training problems"):
        PromptStream([], encode, seed=0)


@pytest.mark.parametrize("use", ["check", "take"])
def test_a_prompt_longer_than_the_context_is_named_with_its_length(use: str) -> None:
    of = stream(12, max_prompt_tokens=10)
    with pytest.raises(
        ConfigError, match=r"problem train-1[01] has 11 tokens, .* leaves 10 beside"
    ):
        of.check() if use == "check" else of.take(12)
    assert of.cursor == 0


def test_a_prompt_of_exactly_the_limit_fits() -> None:
    of = stream(12, max_prompt_tokens=11)
    of.check()
    assert len(of.take(12)) == 12


def test_a_prompt_without_tokens_is_named() -> None:
    with pytest.raises(ConfigError, match="problem train-0 has no tokens"):
        PromptStream(problems(1), lambda _: [], seed=0).check()


def test_the_check_encodes_each_problem_once_and_drawing_not_again() -> None:
    asked: list[str] = []
    of = PromptStream(problems(5), lambda p: [asked.append(p.id) or 1], seed=0)
    of.check()
    of.take(15)
    assert sorted(asked) == [f"train-{n}" for n in range(5)]


def test_of_many_problems_the_check_takes_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "_CHECKED", 3)
    asked: list[str] = []
    PromptStream(problems(103), lambda p: [asked.append(p.id) or 1], seed=0).check()
    assert asked == ["train-100", "train-101", "train-102"]


def test_a_checkpoint_of_other_data_is_refused() -> None:
    state = stream(5, seed=1).state_dict()
    for other in (stream(6, seed=1), stream(5, seed=2)):
        with pytest.raises(
            ConfigError, match=r"5 problems in the order of data.seed 1.*resume with"
        ):
            other.load_state_dict(state)
    changed = [dataclasses.replace(problem, reference="x") for problem in problems(5)]
    with pytest.raises(ConfigError, match="and they differ"):
        PromptStream(changed, encode, seed=1).load_state_dict(state)


def test_draws_that_were_not_taken_cannot_be_given_back() -> None:
    of = stream()
    of.take(2)
    with pytest.raises(ValueError, match="3 draws cannot be given back: 2 were taken"):
        of.give_back(3)
    with pytest.raises(ValueError, match="cannot be given back"):
        of.give_back(-1)


def test_items_that_cannot_be_dealt_equally_are_refused() -> None:
    with pytest.raises(ValueError, match="3 items cannot be shared equally by 2"):
        deal([1, 2, 3], OneRank(0, 2))


def test_one_process_under_accelerate_gathers_its_own() -> None:
    alone = SimpleNamespace(process_index=0, num_processes=1, device=torch.device("cpu"))
    ranks = AccelerateRanks(alone)
    assert (ranks.index, ranks.count) == (0, 1)
    rows = np.array([[1.0, np.nan]])
    assert ranks.gather(rows) is rows
    assert ranks.exchange([b"to itself"]) == [b"to itself"]
