"""`assay best-actions`: a run's episodes in, actions that are better than its own out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from assay.environments.formats import format_of
from assay.environments.record import digest_of
from assay.kit.errors import ConfigError
from assay.kit.runs.progress import Display
from assay.kit.runs.records import write_rows
from assay.trainer.algos.offline import best_actions
from assay.trainer.core.answering import rollout_sampling, standing_engine
from assay.trainer.core.build import encoder
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy, load_policy
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.recipes.best_actions.logged import LoggedStep, steps_in
from assay.trainer.recipes.best_actions.values import ActionValues, LoggedSteps, features, fit
from assay.trainer.settings.config import Config

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class BestPlan:
    """What is asked for.

    Attributes:
        source: a run with recorded episodes.
        gamma: discount of a step, in (0, 1].
        style: the name of the format of calls in prompts; empty for that of the run, or `tagged`
            where a chat template has its own.
    """

    source: Path
    out: Path
    gamma: float = 1.0
    style: str = ""


@dataclass(frozen=True, slots=True)
class ActionTally:
    """What was found.

    Attributes:
        error: Q's mean squared error of its targets, at the end.
        chosen: states of which an action is kept.
        gain: mean of Q - V over these; NaN without one.
    """

    steps: int
    states: int
    error: float
    chosen: int
    gain: float

    def report(self) -> str:
        """A line for people."""
        return (
            f"{self.steps} logged steps, Q's squared error {self.error:.3g}; of {self.states} "
            f"states {self.chosen} have a better action, by {self.gain:.3g} on the mean"
        )


def find_best(
    config: Config, plan: BestPlan, display: Display, *, policy: LoadedPolicy | None = None
) -> ActionTally:
    """Learns Q and V, draws rollout.group_size actions of each state, and writes the best.

    Raises:
        ConfigError: there are no judged episodes, or something cannot be loaded.
    """
    if config.rollout.group_size < 2:
        raise ConfigError("rollout.group_size = 1 leaves no choice; use 2 or more, such as 8")
    if not 0 < plan.gamma <= 1:
        raise ConfigError(f"--gamma {plan.gamma:g} is no discount; use a number above 0, up to 1")
    if plan.out.is_dir():
        raise ConfigError(f"the output {plan.out} is a folder; name a file")
    own = config.method.episodes.format
    style = format_of(plan.style or ("tagged" if own == "auto" else own))
    steps = steps_in(plan.source, style, note=display.note)
    loaded = policy or load_policy(config.model, display.note)
    loaded.model.eval()
    encode = encoder(loaded)
    prompts = [tuple(encode(_problem(step))) for step in steps]
    end = (loaded.tokenizer.eos_token_id,)

    def told(rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> tuple[Any, Any]:
        pad = loaded.tokenizer.pad_token_id
        with loaded.autocast():
            return features(loaded.model, rows, pad_id=pad, at_once=_AT_ONCE)

    actions = [_action_ids(loaded.tokenizer, step, end) for step in steps]
    states_NF, actions_NG = told(list(zip(prompts, actions, strict=True)))
    experience = LoggedSteps(
        states_NF,
        actions_NG,
        torch.tensor([step.reward for step in steps]),
        torch.tensor([-1 if step.following is None else step.following for step in steps]),
    )
    values, error = fit(experience, gamma=plan.gamma, seed=config.run.seed)
    places = list(
        {digest_of(step.messages): n for n, step in reversed([*enumerate(steps)])}.values()
    )
    drawn = _drawn(config, loaded, [(steps[n], prompts[n]) for n in sorted(places)])
    rows = _chosen(drawn, values, told)
    write_rows(plan.out, rows)
    gain = statistics.fmean(row["q"] - row["v"] for row in rows) if rows else float("nan")
    return ActionTally(len(steps), len(places), error, len(rows), gain)


def _problem(step: LoggedStep) -> Problem:
    question = step.messages[-1][1] if step.messages else ""
    return Problem(id=step.episode, question=question, messages=step.messages, reference="")


def _action_ids(tokenizer: Any, step: LoggedStep, end: tuple[int, ...]) -> tuple[int, ...]:
    ids = tokenizer(step.action, add_special_tokens=False)["input_ids"]
    return (*ids, *(() if step.truncated else end))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A state and the actions that the policy would take in it."""

    step: LoggedStep
    prompt: tuple[int, ...]
    actions: tuple[Response, ...]


def _drawn(
    config: Config, loaded: LoadedPolicy, states: Sequence[tuple[LoggedStep, tuple[int, ...]]]
) -> list[_Drawn]:
    size = config.rollout.group_size
    requests = [
        Request(Draw(number, _problem(step), prompt), index)
        for number, (step, prompt) in enumerate(states)
        for index in range(size)
    ]
    with standing_engine(config, loaded) as engine:
        sampler = Sampler(engine, rollout_sampling(config.rollout))
        said = sampler.generate(requests, lambda _place, _response: None)
    return [
        _Drawn(step, prompt, tuple(said[number * size : (number + 1) * size]))
        for number, (step, prompt) in enumerate(states)
    ]


def _chosen(drawn: Sequence[_Drawn], values: ActionValues, told: Any) -> list[dict[str, Any]]:
    """A row of each state whose best action has Q above V; cut ones are none."""
    size = len(drawn[0].actions)
    states_MF, actions_MF = told(
        [(one.prompt, action.ids) for one in drawn for action in one.actions]
    )
    q_SN = values.q(actions_MF).view(-1, size)
    cut_SN = torch.tensor([[action.truncated for action in one.actions] for one in drawn])
    values_S = values.v(states_MF[::size])
    found = best_actions(torch.where(cut_SN, torch.nan, q_SN), values_S)
    rows = []
    for number, place in enumerate(found.tolist()):
        if place < 0:
            continue
        one, q, v = drawn[number], float(q_SN[number, place]), float(values_S[number])
        rows.append(
            {
                "id": one.step.episode,
                "prompt": [{"role": role, "content": text} for role, text in one.step.messages],
                "response": one.actions[place].text,
                "reward": q - v,
                "q": q,
                "v": v,
            }
        )
    return rows
