"""A reward function for OpenRLHF (0.11), called in its rollout workers.

    --reward.remote_url "$(python -c 'from assay.clients.trainers import openrlhf as m
    print(m.__file__)')"

Settings come from the environment of the workers. Where a query does not hold its prompt as it was
sent, ASSAY_RESPONSE_AFTER gives the text before the response.

Policies for a fault (docs/trainers/openrlhf.md): "raise", the default, stops training at the step
that needs the sample. "drop" makes the reward NaN, and `--algo.dynamic_filtering_enable` drops the
sample's group and draws another; without that flag NaN reaches the loss.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from assay.clients.trainers.common.faults import FaultPolicy, read_policy
from assay.clients.trainers.common.labels import labels_of
from assay.clients.trainers.common.queries import response_of
from assay.clients.trainers.common.rows import label_of
from assay.clients.trainers.common.scoring import number_of, score
from assay.clients.trainers.common.settings import Settings, read_settings
from assay.clients.types import Item, Result
from assay.kit.errors import ConfigError

_POLICIES = (FaultPolicy.RAISE, FaultPolicy.DROP)


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any
) -> dict[str, Any]:
    """The rewards of responses, in order: tensors `rewards` and `scores` of N, and `extra_logs`.

    `queries` are prompt and response, decoded with special tokens; `labels` are the references,
    read by `Settings.reference`. The log has `fault` and each component that all judgements have.

    Raises:
        FaultError: a fault, and the policy is "raise".
        ConfigError: a setting or a label is wrong, or a response cannot be separated from its
            prompt.
    """
    import torch  # noqa: PLC0415  # OpenRLHF has it, this distribution does not ask for it

    settings = read_settings()
    policy = read_policy(settings.on_fault or FaultPolicy.RAISE, _POLICIES, "OpenRLHF")
    results = score(settings, items_of(settings, queries, prompts, labels))
    rewards = torch.tensor([number_of(result, policy) for result in results])
    logs = {name: torch.tensor(values) for name, values in logs_of(results).items()}
    return {"rewards": rewards, "scores": rewards, "extra_logs": logs}


def items_of(
    settings: Settings, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any]
) -> list[Item]:
    """The items of a call, as for `reward_func`.

    Raises:
        ConfigError: a label is no reference, or a response cannot be separated from its prompt.
    """
    after = os.environ.get("ASSAY_RESPONSE_AFTER", "")
    return [
        Item(
            _response(query, prompt, after),
            label_of(label, settings.reference, f"row {row}"),
            settings.verifier,
            "" if settings.verifier else settings.task,
            prompt,
            id=str(row),
            labels=labels_of(trainer="openrlhf"),
        )
        for row, (query, prompt, label) in enumerate(zip(queries, prompts, labels, strict=True))
    ]


def _response(query: str, prompt: str, after: str) -> str:
    response = response_of(query, prompt, after)
    if response is None:
        remedy = (
            "set ASSAY_RESPONSE_AFTER to the text before every response"
            if after
            else "set ASSAY_RESPONSE_AFTER, such as '<|im_start|>assistant\\n'"
        )
        raise ConfigError(f"a query does not hold what its response follows; {remedy}")
    return response


def logs_of(results: Sequence[Result]) -> dict[str, list[float]]:
    """OpenRLHF's log values: `fault`, 1 for a fault, and the components, NaN where absent."""
    found = [result.judgement for result in results]
    parts = [{part.name: part.score for part in one.components} if one else {} for one in found]
    names = sorted({name for part in parts for name in part})
    logs = {f"component_{name}": [part.get(name, math.nan) for part in parts] for name in names}
    return {"fault": [float(one is None) for one in found], **logs}
