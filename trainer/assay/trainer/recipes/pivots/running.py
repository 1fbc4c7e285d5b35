"""`assay pivots`: turns in, pivots out, with progress and resuming."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from assay.cli.scoring.partial import PartialFile
from assay.cli.scoring.rows import dump
from assay.clients import Transport
from assay.environments.formats import format_of
from assay.kit.errors import ConfigError
from assay.kit.runs.progress import Display
from assay.trainer.core.answering import rollout_sampling, standing_engine
from assay.trainer.core.build import encoder
from assay.trainer.core.rewards import EVALUATION, open_judge
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy, load_policy
from assay.trainer.recipes.pivots.profiling import VERIFIER, profiles
from assay.trainer.recipes.pivots.trajectories import RecordedTurn, turns_in
from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class PivotPlan:
    """What is asked for.

    Attributes:
        source: a run, or a file of trajectories.
        tau: a pivot's mean reward is below it.
        min_reward: of a recorded episode.
        style: the name of the format of calls in prompts.
        limit: most turns to profile, drawn by the seed; 0 for all.
        every: rows of all turns, pivots or not.
    """

    source: Path
    out: Path
    tau: float
    min_reward: float
    style: str
    limit: int = 0
    every: bool = False


@dataclass(slots=True)
class PivotTally:
    """What was found."""

    turns: int = 0
    pivots: int = 0
    solved: int = 0
    lost: int = 0
    unusable: int = 0
    faults: int = 0

    def add(self, row: dict[str, Any]) -> None:
        """Counts a profiled turn."""
        profile = row["profile"]
        self.turns += 1
        self.faults += profile["faults"]
        self.pivots += row["pivot"]
        usable = profile["recorded"] == 1 and profile["mean"] is not None
        self.unusable += not usable
        self.solved += usable and profile["mean"] == 1
        self.lost += usable and profile["mean"] == 0

    def report(self) -> str:
        """A line for people."""
        return (
            f"{self.turns} turns: {self.pivots} pivots, {self.solved} always right, {self.lost} "
            f"always wrong, {self.unusable} whose own calls are not judged right, "
            f"{self.faults} faults"
        )


def find_pivots(
    config: Config,
    plan: PivotPlan,
    display: Display,
    *,
    transport: Callable[[], Transport] | None = None,
    policy: LoadedPolicy | None = None,
) -> PivotTally:
    """Profiles the turns and writes the pivots; goes on where it was interrupted.

    Raises:
        ConfigError: there are no turns, or something cannot be loaded.
        OutageError: the reward services were away for too long.
    """
    if config.rollout.group_size < 2:
        raise ConfigError("rollout.group_size = 1 shows no variance; use 2 or more, such as 8")
    style = format_of(plan.style)
    turns = list(turns_in(plan.source, style, min_reward=plan.min_reward, note=display.note))
    if not turns:
        raise ConfigError(f"{plan.source} holds no turn that calls a tool and came to something")
    turns = _drawn(turns, plan.limit, config.run.seed)
    tally = PivotTally()
    made_from = _origin(config, plan, turns)
    with PartialFile(plan.out, made_from, tally.add) as file:
        if file.discarded:
            display.note("starting anew: what was there was made otherwise")
        if file.kept:
            display.note(f"going on: {file.kept} of {len(turns)} turns were profiled before")
        if tally.turns < len(turns):
            _profile(config, plan, turns, tally, file, display, transport, policy)
        file.finish(None if plan.every else lambda row: bool(row["pivot"]), None)
    return tally


def _profile(  # noqa: PLR0917  # what the run is
    config: Config,
    plan: PivotPlan,
    turns: list[RecordedTurn],
    tally: PivotTally,
    file: PartialFile,
    display: Display,
    transport: Callable[[], Transport] | None,
    policy: LoadedPolicy | None,
) -> None:
    loaded = policy or load_policy(config.model, display.note)
    loaded.model.eval()
    reward = replace(config.reward, verifier=VERIFIER)
    display.begin("profiling turns", len(turns), tally.turns)
    try:
        with (
            standing_engine(config, loaded) as engine,
            open_judge(reward, transport, run="pivots") as judge,
        ):
            found = profiles(
                islice(turns, tally.turns, None),
                Sampler(engine, rollout_sampling(config.rollout)),
                lambda: judge.open_round(0, EVALUATION),
                encoder(loaded),
                samples=config.rollout.group_size,
                at_once=config.rollout.prompts_per_step,
                first=tally.turns,
            )
            for profile in found:
                row = profile.row(plan.tau)
                tally.add(row)
                file.write(dump(row))
                file.flush()
                display.advance(tally.turns)
    finally:
        display.end()


def _drawn(turns: list[RecordedTurn], limit: int, seed: int) -> list[RecordedTurn]:
    if not limit or limit >= len(turns):
        return turns
    chosen = sorted(random.Random(seed).sample(range(len(turns)), limit))  # noqa: S311  # no secret
    return [turns[place] for place in chosen]


def _origin(config: Config, plan: PivotPlan, turns: list[RecordedTurn]) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    rollout = config.rollout
    return {
        "turns": [f"{one.trajectory}/{one.turn}/{one.digest}" for one in turns],
        "tau": plan.tau,
        "style": plan.style,
        "model": config.model.name,
        "seed": config.run.seed,
        "samples": rollout.group_size,
        "sampling": [rollout.max_new_tokens, rollout.temperature, rollout.top_p, rollout.top_k],
    }
