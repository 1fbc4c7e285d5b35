"""Rewards for AReaL (1.0.4): a workflow, and a function for its process pool.

`RLVRWorkflow` is AReaL's own workflow with the reward awaited. A fault raises `FaultError`: AReaL
gives up the prompt's whole group and draws another prompt ("drop", the only policy, because its
executor swallows what a workflow raises).

`reward_fn` is for AReaL's own workflow, which runs it in a pool of processes. There a call of more
than 15 s, the wait for a free process included, is tried four times and then *becomes 0*. The
adapter refuses time-outs that would reach this limit, and while a server is away only one call in
five seconds waits for it. It cannot see the wait for a process: with a slow verifier a full pool
makes zeros.

docs/trainers/areal.md has the settings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from assay.clients.trainers.common.faults import FaultError, FaultPolicy, judgement_of, read_policy
from assay.clients.trainers.common.queries import without_end
from assay.clients.trainers.common.scoring import score, score_awaited
from assay.clients.trainers.common.settings import Settings, read_settings
from assay.clients.trainers.common.single import read_item
from assay.clients.types import Fault, Item
from assay.kit.errors import ConfigError

POOL_TIMEOUT_S = 15.0  # areal.api.reward_api.AsyncRewardWrapper
_MARGIN_S = 1.0
_DEFAULT_TIMEOUT_S = "3"  # AReaL asks four times

# While a server is away one call waits for it, and the others in the pool do not.
_AWAY_S = 5.0
_AWAY_CODES = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")
_away: dict[str, tuple[float, Fault]] = {}


def reward_fn(
    prompt: str,
    completions: str,
    prompt_ids: Sequence[int],
    completion_ids: Sequence[int],
    **data: Any,
) -> float:
    """The reward of one response, asked in a process of AReaL's pool.

    `data` is the row: "reference" or "answer", "verifier", "task", "parameters". Special tokens at
    the end of `completions`, one text, are removed; `completion_ids` are only counted.

    Raises:
        FaultError: there is no judgement.
        ConfigError: a setting is missing, or the time-out is longer than AReaL waits.
    """
    settings = _settings({"timeout_s": os.environ.get("ASSAY_TIMEOUT_S") or _DEFAULT_TIMEOUT_S})
    if settings.timeout_s > POOL_TIMEOUT_S - _MARGIN_S:
        raise ConfigError(
            f"timeout_s is {settings.timeout_s:g}, and AReaL makes 0 of what takes its pool "
            f"{POOL_TIMEOUT_S:g} s; set ASSAY_TIMEOUT_S to at most "
            f"{POOL_TIMEOUT_S - _MARGIN_S:g}, or name the workflow "
            "assay.clients.trainers.areal.RLVRWorkflow"
        )
    until_s, known = _away.get(settings.target, (0.0, None))
    if known is not None and time.monotonic() < until_s:
        raise FaultError("", known)
    item = _item(settings, prompt, completions, completion_ids, data)
    [result] = score(settings, [item])
    if result.fault and result.fault.code in _AWAY_CODES:
        _away[settings.target] = (time.monotonic() + _AWAY_S, result.fault)
    return judgement_of(result).reward


async def async_reward_fn(
    prompt: str,
    completions: str,
    prompt_ids: Sequence[int],
    completion_ids: Sequence[int],
    **data: Any,
) -> float:
    """As `reward_fn`, awaited: for your own workflows, in place of `AsyncRewardWrapper`.

    Raises:
        FaultError: there is no judgement.
        ConfigError: a setting is missing.
    """
    settings = _settings({})
    item = _item(settings, prompt, completions, completion_ids, data)
    [result] = await score_awaited(settings, [item])
    return judgement_of(result).reward


def _settings(options: dict[str, Any]) -> Settings:
    settings = read_settings(options)
    read_policy(settings.on_fault or FaultPolicy.DROP, [FaultPolicy.DROP], "AReaL")
    return settings


def _item(
    settings: Settings,
    prompt: str,
    completion: str,
    completion_ids: Sequence[int],
    data: dict[str, Any],
) -> Item:
    text = without_end(completion)  # AReaL decodes it with them
    count = len(completion_ids)
    return read_item(settings, prompt, text, data, response_token_count=count, trainer="areal")


def __getattr__(name: str) -> Any:
    """Makes `RLVRWorkflow` at its first use: importing this module does not import AReaL."""
    if name != "RLVRWorkflow":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from areal.workflow.rlvr import RLVRWorkflow  # noqa: PLC0415  # imports all of AReaL

    class AssayRLVRWorkflow(RLVRWorkflow):
        """AReaL's workflow of one turn, with our rewards awaited."""

        def __init__(self, reward_fn: Any = reward_fn, *args: Any, **kwargs: Any) -> None:
            super().__init__(reward_fn, *args, **kwargs)
            self.reward_fn = async_reward_fn  # not a path, so that it is not wrapped later
            self.async_reward_fn = async_reward_fn

    globals()[name] = AssayRLVRWorkflow
    return AssayRLVRWorkflow
