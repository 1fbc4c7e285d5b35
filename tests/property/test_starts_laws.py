"""ReST-RL's starting points (arXiv 2508.19576): which, how often, and what of them trains."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Judgement, Result
from assay.kit.errors import ConfigError
from assay.trainer.algos.selection import accepted_best, exponential_weights
from assay.trainer.core.batch import Scored, pad, token_rewards
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Draw, Request, Response, Sampling
from assay.trainer.methods.starts.method import Started, Starts
from assay.trainer.recipes.starts.choosing import (
    StartsPlan,
    StartsTally,
    drawn_states,
    starting_rows,
    write_starts,
)
from assay.trainer.rollouts.exchange import held
from assay.trainer.rollouts.types import Collected
from assay.trainer.settings import config as configs
from assay.trainer.settings.objective import LossConfig
from rollouts_slots_support import Numbers

REWARDS = st.lists(st.floats(0, 1), max_size=8)


@given(rewards=REWARDS, std=st.floats(0, 0.6), best=st.floats(0, 1))
def test_a_group_trains_by_its_deviation_and_is_started_from_by_its_best(
    rewards: list[float], std: float, best: float
) -> None:
    kept, place = accepted_best(rewards, least_std=std, least_best=best)
    if len(rewards) < 2:
        assert (kept, place) == (False, None)
        return
    mean = sum(rewards) / len(rewards)
    spread = math.sqrt(sum((one - mean) ** 2 for one in rewards) / len(rewards))
    assert kept == (spread >= std) or spread == pytest.approx(std, abs=1e-9)
    if place is None:
        assert not kept or max(rewards) < best
    else:
        assert kept
        assert rewards[place] == max(rewards) >= best
        assert rewards.index(max(rewards)) == place


@given(count=st.integers(0, 40), alpha=st.floats(0.05, 0.99))
def test_each_state_comes_alpha_times_as_often_as_the_one_before(count: int, alpha: float) -> None:
    weights = exponential_weights(count, alpha=alpha)
    assert sum(weights) == pytest.approx(int(count > 0))
    for one, after in itertools.pairwise(weights):
        assert after == pytest.approx(alpha * one)


def row(prompt: str, response: str, reward: float | None) -> dict[str, Any]:
    asked = [{"role": "user", "content": prompt}]
    return {"prompt": asked, "response": response, "reward": reward, "reference": "7", "tests": ""}


def test_rows_are_prompts_and_beginnings_of_their_best(tmp_path: Path) -> None:
    rows = [
        row("a", "x\ny\nz", 1.0), row("a", "q", 0.0), row("a", "w", None),
        row("b", "x\ny", 0.5), row("b", "q", 0.0),
        row("c", "x\ny", 1.0), row("c", "q", 1.0),
        row("d", "one line", 1.0), row("d", "q", 0.0),
    ]  # fmt: skip
    path, out = tmp_path / "rows.jsonl", tmp_path / "starts.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    chosen = write_starts(StartsPlan(path, share=1.0), out)
    assert str(chosen) == "3 of 4 prompts train, and 3 beginnings of 1 good responses"
    made = [json.loads(line) for line in out.read_text().splitlines()]
    asked = [one["prompt"][0]["content"] for one in made]
    assert asked == ["a", "a", "a", "a", "b", "d"]
    assert ["begun" in one for one in made] == [False, True, True, True, False, False]
    assert {one["begun"] for one in made if "begun" in one} <= {"x\n", "x\ny\n"}
    assert all(one["reference"] == "7" and "tests" not in one for one in made)
    write_starts(StartsPlan(path, share=1.0), tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == out.read_text()


def test_states_are_drawn_by_their_weights() -> None:
    plan = StartsPlan(Path(), alpha=0.5, share=0.5)
    text = "1\n2\n3\n4"
    drawn = Counter(one for n in range(2000) for one in drawn_states(text, plan, str(n)))
    assert sum(drawn.values()) == 4000
    for state, weight in zip(("1\n", "1\n2\n", "1\n2\n3\n"), (4 / 7, 2 / 7, 1 / 7), strict=True):
        assert drawn[state] / 4000 == pytest.approx(weight, abs=0.04)


@pytest.mark.parametrize(
    ("rows", "plan", "told"),
    [
        ([row("a", "x", 1.0), row("a", "y", 1.0)], {}, "none has rewards that deviate by 0.05"),
        ([], {}, "no run with recorded rollouts"),
        ([row("a", "x", 1.0)], {"alpha": 1.0}, "--alpha is between 0 and 1"),
    ],
)
def test_what_cannot_be_chosen_from_is_said(
    tmp_path: Path, rows: list[Any], plan: Any, told: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    with pytest.raises(ConfigError, match=told):
        write_starts(StartsPlan(path, **plan), tmp_path / "out.jsonl")
    assert list(starting_rows([], StartsPlan(path), StartsTally())) == []


def test_what_a_row_holds_begins_every_response_and_trains_nothing() -> None:
    rows = ["", '{"begun": ""}', '{"begun": "ab"}', '{"begun": "abcd"}']
    requests = [
        Request(Draw(n, Problem(str(n), "", (), "", row=text), (7,)), index)
        for n, text in enumerate(rows)
        for index in range(3)
    ]
    talk = Started("begun", lambda text: [ord(letter) for letter in text], 9)

    def written(request: Request) -> Response:
        begun = request.begun.ids if request.begun else ()
        chance = random.Random(f"{request.draw.number}-{request.index}")
        ids = (*begun, *(chance.randrange(2, 9) for _ in range(chance.randrange(1, 4))), 1)
        return Response(ids, "", (-0.5,) * len(ids), False)

    class Round:
        seen = 0

        def submit(self, request: Request, response: Response) -> None:
            del request
            assert response.text == " ".join(map(str, response.ids)), "judged as a whole"
            self.seen += 1

        def results(self) -> list[Result]:
            return [Result("", Judgement(1.0, "correct"))] * self.seen

    sampler = Sampler(ScriptedEngine(written, tokenizer=Numbers()), Sampling(9))
    rollouts = held(sampler, requests, Round(), talk)
    given_tokens = [0, 0, 2, 4]
    for rollout in rollouts:
        count = given_tokens[rollout.request.draw.number]
        assert talk.facts(rollout) == (count,)
        assert rollout.response.ids[:count] == tuple(map(ord, "abcd"[:count]))
        assert rollout.length == len(rollout.response.ids) - count
        assert rollout.results == [rollout.result]
    hook = Starts(configs.build({"method": {"starts": {"column": "begun"}}}, origin="test"))
    items = [Scored(one, 1.0) for one in rollouts]
    padded = pad(items, pad_id=0, policy_step=0, device=torch.device("cpu"))
    batch = hook.mark(padded, items, Collected([], []))
    rewards_BT = token_rewards(batch, LossConfig(), [hook])
    for number, rollout in enumerate(rollouts):
        count, length = given_tokens[rollout.request.draw.number], len(rollout.response.ids)
        expected = [False] * count + [True] * (length - count)
        for name in ("own", "loss_mask", "value_mask"):
            assert batch[name][number, :length].tolist() == expected
        assert float(rewards_BT[number, length - 1]) == float(rewards_BT[number].sum()) == 1.0


def test_a_beginning_without_room_is_refused() -> None:
    talk = Started("begun", lambda text: [ord(letter) for letter in text], 3)
    request = Request(Draw(0, Problem("p", "", (), "", row='{"begun": "abc"}'), (7,)), 0)
    with pytest.raises(ConfigError, match="'begun' of problem p has 3 tokens"):
        talk.begin(request)
