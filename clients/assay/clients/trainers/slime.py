"""A reward function for slime: for one sample, and, with --group-rm, for a group.

    --custom-rm-path assay.clients.trainers.slime.custom_rm

Settings come from the environment; a sample's `metadata` may hold its own `verifier`, `task` and
`parameters`. Policies for a fault (docs/trainers/slime.md); "drop" and "mask" need their function,
as slime's own normalisation would spread NaN over the group:

1. "raise", the default: the rollout ends with the exception, and training stops.
2. "drop": `--dynamic-sampling-filter-path` with `drop_faulted_groups` removes the sample's group,
and slime draws another.
3. "mask": the sample has no loss (`remove_sample`); `--custom-reward-post-process-path` with
`post_process_rewards` leaves it out of its group's mean and deviation.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from assay.clients.trainers.common.faults import FaultPolicy, read_policy
from assay.clients.trainers.common.labels import labels_of
from assay.clients.trainers.common.rows import label_of, prompt_of
from assay.clients.trainers.common.scoring import details_of, score_awaited
from assay.clients.trainers.common.settings import Settings, read_settings
from assay.clients.types import Item, Result
from assay.kit.errors import ConfigError

_POLICIES = (FaultPolicy.RAISE, FaultPolicy.DROP, FaultPolicy.MASK)
_NORMALISED = ("grpo", "gspo", "cispo", "reinforce_plus_plus_baseline")
_SCALED = ("grpo", "gspo", "cispo")


async def custom_rm(args: Any, sample: Any, **_: Any) -> Any:
    """The reward of a `slime.utils.types.Sample`, or those of a list of samples.

    A reward is a number; with `args.reward_key` a mapping that holds it.

    Raises:
        FaultError: a fault, and the policy is "raise".
        ConfigError: a setting or a label is wrong.
    """
    settings = read_settings()
    policy = read_policy(settings.on_fault or FaultPolicy.RAISE, _POLICIES, "slime")
    samples = list(sample) if isinstance(sample, list) else [sample]
    items = [item_of(settings, one, str(row)) for row, one in enumerate(samples)]
    rewards = []
    for one, result in zip(samples, await score_awaited(settings, items), strict=True):
        rewards.append(_reward_of(args, policy, result))
        if policy is FaultPolicy.MASK and result.fault:
            one.remove_sample = True
    return rewards if isinstance(sample, list) else rewards[0]


def item_of(settings: Settings, sample: Any, item_id: str) -> Item:
    """The item of a sample.

    Raises:
        ConfigError: its label is no reference.
    """
    own = sample.metadata if isinstance(sample.metadata, dict) else {}
    verifier = settings.verifier or str(own.get("verifier") or "")
    return Item(
        response=sample.response,
        reference=label_of(sample.label, settings.reference, f"sample {sample.index}"),
        verifier=verifier,
        task="" if verifier else settings.task or str(own.get("task") or ""),
        prompt=prompt_of(sample.prompt),
        id=item_id,
        group_id="" if sample.group_index is None else str(sample.group_index),
        parameters=own.get("parameters") or {},
        response_token_count=sample.response_length or None,
        truncated=getattr(sample.status, "value", "") == "truncated",
        labels=labels_of(trainer="slime", data=own.get("data_source")),
    )


def _reward_of(args: Any, policy: FaultPolicy, result: Result) -> Any:
    details = details_of(result, policy)
    key = getattr(args, "reward_key", None)
    return {**details, key: details["score"]} if key else details["score"]


def drop_faulted_groups(args: Any, samples: Sequence[Any], **_: Any) -> Any:
    """A dynamic sampling filter that drops a group with a fault, so that slime draws another.

    It returns slime's `DynamicFilterOutput`; its metric counts the reason "fault".
    """
    from slime.rollout.filter_hub.base_types import DynamicFilterOutput  # noqa: PLC0415

    faulted = any(math.isnan(sample.get_reward_value(args)) for sample in samples)
    return DynamicFilterOutput(keep=not faulted, reason="fault" if faulted else None)


def post_process_rewards(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Slime's own normalisation, over the judgements of each group; `samples` are groups in order.

    Returns:
        Raw and normalised rewards. A sample without a judgement has NaN and 0, and no loss; the
            only judged one of several has 0.

    Raises:
        ConfigError: a sample has no judgement, and the estimator does not normalise by group.
    """
    raw = [float(sample.get_reward_value(args)) for sample in samples]
    if args.advantage_estimator not in _NORMALISED or not args.rewards_normalization:
        if any(math.isnan(reward) for reward in raw):
            raise ConfigError(
                "on_fault=mask needs rewards that are normalised by group; set on_fault=drop"
            )
        return raw, raw
    scaled = args.advantage_estimator in _SCALED and args.grpo_std_normalization
    size = args.n_samples_per_prompt
    if len(raw) != size * args.rollout_batch_size:
        size = len(raw)  # as slime has it: groups of unequal sizes are one group
    rewards: list[float] = []
    for first in range(0, len(raw), max(size, 1)):
        rewards += _normalised(raw[first : first + size], scaled=scaled)
    return raw, rewards


def _normalised(group: Sequence[float], *, scaled: bool) -> list[float]:
    found = [reward for reward in group if not math.isnan(reward)]
    if len(found) < 2:
        return [0.0] * len(group)
    mean = statistics.fmean(found)
    scale = statistics.stdev(found) + 1e-6 if scaled else 1.0
    return [0.0 if math.isnan(reward) else (reward - mean) / scale for reward in group]
