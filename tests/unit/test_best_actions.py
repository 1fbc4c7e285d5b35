"""Digi-Q's choice of actions: its arithmetic, what is read, and a real policy's better actions."""

from __future__ import annotations

import asyncio
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from experiments.archer import contest as talks
from experiments.episodes import ANSWERS, CUES
from experiments.miniature import Service, Shape, pretrained, tiny, train, write_problems
from hypothesis import given
from hypothesis import strategies as st

from assay.environments import Episode, Reply, ToolCall
from assay.environments.formats import format_of
from assay.environments.record import record_of
from assay.environments.registry import environment_of
from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import path_for, write_rollouts
from assay.trainer.algos.offline import best_actions, td_targets
from assay.trainer.core.build import encoder
from assay.trainer.engines.models import load_policy
from assay.trainer.methods.offline.stored import read_stored
from assay.trainer.recipes.best_actions.logged import steps_in
from assay.trainer.recipes.best_actions.running import BestPlan, find_best
from assay.trainer.recipes.best_actions.values import LoggedSteps, fit
from assay.trainer.settings import config as configs

NUMBER = st.floats(-5, 5)
TAGGED = format_of("tagged")


@given(st.lists(st.tuples(NUMBER, st.booleans()), min_size=1, max_size=8), st.floats(0.1, 1))
def test_targets_along_an_episode_add_up_to_its_discounted_reward(
    steps: list[tuple[float, bool]], gamma: float
) -> None:
    """Behind an end nothing counts, NaN neither."""
    value = torch.tensor([math.nan], dtype=torch.float64)
    expected = 0.0
    for number, (reward, _) in enumerate(reversed(steps)):
        ends = torch.tensor([number == 0])
        value = td_targets(torch.tensor([reward], dtype=torch.float64), value, ends, gamma=gamma)
        expected = reward + gamma * expected
    assert math.isclose(float(value), expected, rel_tol=1e-9, abs_tol=1e-9)


@given(
    st.lists(st.one_of(NUMBER, st.just(math.nan)), min_size=1, max_size=6), NUMBER, st.floats(-3, 3)
)
def test_the_best_action_is_above_the_value_or_there_is_none(
    q: list[float], value: float, shift: float
) -> None:
    known = [one for one in q if not math.isnan(one)]
    place = int(best_actions(torch.tensor([q]), torch.tensor([value])))
    tops = torch.tensor(known)
    if not known or not bool(tops.max() > torch.tensor(value)):
        assert place == -1
    else:
        assert q[place] == max(known)
    whole = torch.tensor([[round(one, 2) for one in q]], dtype=torch.float64)
    at = torch.tensor([round(value, 2) + 0.001], dtype=torch.float64)
    assert best_actions(whole + shift, at + shift).equal(best_actions(whole, at))


def test_values_of_a_chain_are_those_of_the_logged_actions() -> None:
    """A vector: two states; in the first `on` leads to the second, `off` ends with 0.25; in the
    second `right` earns 1 and `wrong` 0. Logged: all four, `right` once in four."""
    state = torch.eye(2)
    action = torch.eye(4)
    rows: list[tuple[int, int, float, int]] = []
    for second in (2, 3, 3, 3):
        rows += [(0, 0, 0.0, len(rows) + 1), (1, second, float(second == 2), -1)]
    rows += [(0, 1, 0.25, -1)] * 4
    wide = [torch.cat([state[s], torch.zeros(4)]) for s, *_ in rows]
    taken = [torch.cat([state[s], action[a]]) for s, a, *_ in rows]
    experience = LoggedSteps(
        torch.stack(wide),
        torch.stack(taken),
        torch.tensor([reward for *_, reward, _ in rows]),
        torch.tensor([following for *_, following in rows]),
    )
    gamma = 0.5
    values, error = fit(experience, gamma=gamma, seed=0)
    q = values.q(experience.actions_NG)
    v = values.v(experience.states_NF)
    assert float(q[1]) == pytest.approx(1.0, abs=0.05)
    assert float(q[3]) == pytest.approx(0.0, abs=0.05)
    assert float(v[1]) == pytest.approx(0.25, abs=0.05)  # of the policy that was logged
    assert float(q[0]) == pytest.approx(gamma * 0.25, abs=0.05)
    assert float(q[8]) == pytest.approx(0.25, abs=0.05)
    assert float(v[0]) == pytest.approx((gamma * 0.25 + 0.25) / 2, abs=0.05)
    assert error < 0.01


WORLD = '''
from assay.clients.types import Fault
from assay.environments import Environment, tool
from assay.environments.environment import EpisodeFault

class Sums(Environment):
    """Sums."""

    @tool
    def add(self, a: int, b: int = 1) -> str:
        """Adds."""
        if a == 13:
            raise EpisodeFault(Fault("SESSION_LOST", "gone"))
        return str(a + b)

    def reward(self):
        return float(self.row["reward"])
'''


def test_steps_have_their_rewards_and_a_fault_has_none(tmp_path: Path) -> None:
    place = tmp_path / "sums.py"
    place.write_text(WORLD)

    async def played(reward: float, *numbers: int) -> dict[str, Any]:
        episode = Episode(environment_of(f"{place}:Sums")())
        await episode.begin({"prompt": "sums", "reference": "", "reward": reward})
        for number in numbers:
            await episode.take(Reply(f"add {number}", (ToolCall("add", {"a": number}),)))
        if 13 not in numbers:
            await episode.take(Reply("done", answer="done"))
        await episode.end()
        return record_of(episode)

    episodes = [asyncio.run(played(r, *n)) for r, n in ((1, (2, 3)), (1, (4, 13)), (0.5, ()))]
    rows = [
        {"version": 1, "step": 1, "draw": draw, "sample": 0, "episode": episode}
        for draw, episode in enumerate(episodes)
    ]
    write_rollouts(path_for(tmp_path / "run" / "rollouts", 1), rows)
    said: list[str] = []
    steps = steps_in(tmp_path / "run", TAGGED, note=said.append)
    assert [(one.action, one.reward, one.following) for one in steps] == [
        ("add 2", 0.0, 1),
        ("add 3", 0.0, 2),
        ("done", 1.0, None),
        ("done", 0.5, None),
    ]
    assert [role for role, _ in steps[1].messages] == ["system", "user", "assistant", "user"]
    assert "left out 1 episodes without a judgement" in said[-1]
    with pytest.raises(ConfigError, match="no run with rollouts"):
        steps_in(tmp_path / "nowhere", TAGGED)


TOLD = '''
from assay.environments import Observation
from experiments.episodes import ANSWERS, Cues

class Told(Cues):
    """Each right answer earns on its turn."""

    name = "told"

    def turn(self, turn):
        cue = self._cues[len(self._right)]
        said = super().turn(turn)
        earned = float(turn.text.strip().startswith(ANSWERS[cue]))
        return None if said is None else Observation.user(said, reward=earned)

    def reward(self):
        return float(self._right[-1])
'''


class Notes:
    """A display that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.slow
def test_a_real_policys_better_actions_are_right_more_often(tmp_path: Path) -> None:
    """Talks of eight turns, each with a reward of its own; the policy is right in a sixth."""
    torch.set_num_threads(1)
    shape = Shape(width=64, layers=2, context=72, steps=100, batch=32, learning_rate=5e-3)
    model = pretrained(tmp_path / "cues", talks.WORDS, talks.drawn, shape)
    rows, held_out = _problems(tmp_path)
    place = tmp_path / "told.py"
    place.write_text(TOLD)
    own = (
        *talks.OWN,
        f"method.episodes.environment={place}:Told",
        "optim.learning_rate=0",
        "rollout.prompts_per_step=96",
        "rollout.group_size=2",
        "optim.mini_batches=1",
    )
    wanted = {"steps": 1, "seed": 0}
    config = tiny("grpo", wanted, (model, rows, held_out), *own)
    train(config, tmp_path / "run", lambda: Service(lambda _item: False, rewards=(0.0, 1.0)))
    logged = steps_in(tmp_path / "run", TAGGED)
    assert len(logged) == 96 * 2 * talks.TURNS

    def right(prompt: str, said: str) -> bool:
        return said.strip().startswith(ANSWERS[prompt[-1]])

    before = [right(one.messages[-1][1], one.action) for one in logged]
    out = tmp_path / "better.jsonl"
    display: Any = Notes()
    policy = load_policy(config.model, display.note)
    tally = find_best(config, BestPlan(tmp_path / "run", out), display, policy=policy)
    better = [json.loads(line) for line in out.read_text().splitlines()]
    assert tally.chosen == len(better) > tally.states / 3
    assert all(row["q"] > row["v"] for row in better)
    assert all(math.isclose(row["reward"], row["q"] - row["v"], abs_tol=1e-6) for row in better)
    after = [right(row["prompt"][-1]["content"], row["response"]) for row in better]
    assert sum(before) / len(before) < 0.3
    assert sum(after) / len(after) > 2 * sum(before) / len(before)
    again = configs.load(
        Path("offline/sft"),
        [f"model={model}", f"data={held_out}", f"method.offline.rows={out}",
         "method.offline.keep=all", "data.template={question}"],
    )  # fmt: skip
    stored = read_stored(again, encoder(policy), policy.tokenizer)
    assert len(stored.responses) == len(better)
    few = replace(config, rollout=replace(config.rollout, group_size=1))
    with pytest.raises(ConfigError, match="leaves no choice"):
        find_best(few, BestPlan(tmp_path / "run", out), display, policy=policy)


def _problems(folder: Path) -> tuple[Path, Path]:
    dice = random.Random(0)
    drawn = [("".join(dice.choices(CUES, k=talks.TURNS)), "-") for _ in range(97)]
    held_out = write_problems(folder / "held-out.jsonl", drawn[:1])
    return write_problems(folder / "cues.jsonl", drawn[1:]), held_out
