"""An environment proves itself: scripted episodes with known ends (`Environment.proofs`).

An environment that pays for nothing, or nothing for what is right, stops the run at its start.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from assay.clients.core.portal import LoopThread
from assay.environments.environment import Environment, Proof, Services
from assay.environments.episode import Episode, EpisodeLimits
from assay.environments.services import RewardServices
from assay.environments.types import EpisodeOutcome, Reply, ToolCall
from assay.kit.errors import ConfigError

_SECONDS = 300.0
_NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class ProofResult:
    """What came of one scripted episode.

    Attributes:
        number: from 1.
        expected: the reward and the ending that it must have, in words.
        found: those that it had, with a fault's reason and the last answer of a tool.
    """

    number: int
    ok: bool
    expected: str
    found: str
    proof: Proof
    outcome: EpisodeOutcome
    seconds: float


def prove(
    kind: type[Environment],
    settings: Any,
    services: Services | None = None,
    shared: Any = None,
    *,
    proofs: Sequence[Proof] | None = None,
) -> list[ProofResult]:
    """Runs scripted episodes, one after the other, on an event loop in a thread of its own.

    Without `services` a reward server is started where a proof needs one; without `shared`, which
    is what `kind.open` yields, that is entered for the length of the proofs. `proofs` are by
    default the environment's own.

    Raises:
        ConfigError: the environment cannot be opened.
    """
    with ExitStack() as stack:
        if services is None:
            services = stack.enter_context(RewardServices())
        if shared is None:
            shared = stack.enter_context(kind.open(settings))
        loop = LoopThread("assay-selftest", "an environment proves itself on another event loop")
        stack.callback(loop.close)
        return [
            loop.run(_run(number, proof, kind(settings, shared, services)))
            for number, proof in enumerate(
                kind.proofs(settings) if proofs is None else proofs, start=1
            )
        ]


def insist(kind: type[Environment], results: Sequence[ProofResult]) -> None:
    """Stops where a proof failed.

    Raises:
        ConfigError: with what was expected and found.
    """
    failed = [one for one in results if not one.ok]
    if failed:
        first = failed[0]
        raise ConfigError(
            f"the environment {kind.name!r} fails its self-test: episode {first.number} of "
            f"{len(results)}, expected {first.expected}; found {first.found}"
        )


async def _run(number: int, proof: Proof, environment: Environment) -> ProofResult:
    began_s = time.monotonic()
    episode = Episode(environment, EpisodeLimits(seconds=_SECONDS))
    observation = await episode.begin(proof.row)
    waiting = list(proof.turns)
    while observation is not None and waiting:
        observation = await episode.take(_reply(waiting.pop(0)))
    outcome = await episode.end()
    expected = f"reward {proof.reward:g}, ending {proof.ending}"
    found = _found(episode, outcome)
    reward = outcome.result.reward
    unsaid = f", with {len(waiting)} turns of the script not taken" if waiting else ""
    ok = (
        not unsaid
        and outcome.ending is proof.ending
        and reward is not None
        and abs(reward - proof.reward) <= _NEAR
    )
    return ProofResult(
        number, ok, expected, found + unsaid, proof, outcome, time.monotonic() - began_s
    )


def _reply(turn: ToolCall | Sequence[ToolCall] | str) -> Reply:
    if isinstance(turn, str):
        return Reply(turn, answer=turn)
    calls = (turn,) if isinstance(turn, ToolCall) else tuple(turn)
    return Reply("", calls=calls)


def _found(episode: Episode, outcome: EpisodeOutcome) -> str:
    reward, fault = outcome.result.reward, outcome.result.fault
    earned = f"reward {reward:g}" if reward is not None else "no reward"
    text = f"{earned}, ending {outcome.ending}"
    if fault is not None:
        text += f" ({fault.reason}: {fault.message[:300]})"
    called = [one for step in episode.steps for one in step.calls]
    if called:
        text += f"; the last tool answered {called[-1].result.text[-300:]!r}"
    return text
