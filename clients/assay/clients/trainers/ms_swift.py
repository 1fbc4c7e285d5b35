"""A reward function for ms-swift's GRPO (4.6), documented in docs/trainers/ms-swift.md.

Settings come from the environment; ASSAY_REFERENCE_COLUMN names the column of references, by
default `reference`, `solution` or `answer`. ms-swift adds rewards with `nansum`, so that None *is a
0* in the group's mean. Hence

1. "raise", the default: training stops.
2. "mask": the reward is None. Accepted only with `--scale_rewards gdpo` and without
`--dynamic_sample`, where ms-swift leaves None out of mean and deviation.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from swift.rewards import AsyncORM, orms

from assay.clients.trainers.common.faults import FaultPolicy, judgement_of, read_policy
from assay.clients.trainers.common.labels import labels_of
from assay.clients.trainers.common.rows import RowReader, text_of
from assay.clients.trainers.common.scoring import score_awaited
from assay.clients.trainers.common.settings import read_settings
from assay.clients.types import Item
from assay.kit.errors import ConfigError

_POLICIES = (FaultPolicy.RAISE, FaultPolicy.MASK)
_COLUMNS = ("reference", "solution", "answer")


class AssayReward(AsyncORM):
    """The reward function that ms-swift awaits for each batch; made from its training arguments.

    Raises:
        ConfigError: a setting is wrong, or ms-swift would make a fault a 0.
    """

    def __init__(self, args: Any = None, **_: Any) -> None:
        super().__init__(args)
        self.settings = read_settings()
        self.policy = read_policy(
            self.settings.on_fault or FaultPolicy.RAISE, _POLICIES, "ms-swift"
        )
        nansum = getattr(args, "scale_rewards", None) != "gdpo"
        if self.policy is FaultPolicy.MASK and (nansum or getattr(args, "dynamic_sample", False)):
            raise ConfigError(
                "on_fault=mask needs --scale_rewards gdpo and no --dynamic_sample: elsewhere "
                "ms-swift counts a sample without a reward as 0; set on_fault=raise"
            )
        self.reader = RowReader(
            self.settings.verifier,
            self.settings.task,
            os.environ.get("ASSAY_REFERENCE_COLUMN", ""),
            reference_kind=self.settings.reference,
            usual_columns=_COLUMNS,
            labels=labels_of(trainer="ms-swift"),
        )

    async def __call__(self, completions: Sequence[str], **columns: Any) -> list[float | None]:
        """The reward of each completion, in order; None for a fault under "mask".

        Raises:
            FaultError: a fault, and the policy is "raise".
            ConfigError: the reference column is missing or holds no references.
        """
        prompts = [_prompt_of(messages) for messages in columns.get("messages") or ()]
        texts = [text_of(completion) for completion in completions]
        items = self.reader.items(prompts or [""] * len(texts), texts, None, columns)
        spent = columns.get("response_token_ids") or [()] * len(items)
        items = [_with_count(item, turns) for item, turns in zip(items, spent, strict=True)]
        missing = self.reader.missing(columns, "ASSAY_REFERENCE_COLUMN")
        results = await score_awaited(self.settings, items, missing)
        if self.policy is FaultPolicy.RAISE:
            return [judgement_of(result).reward for result in results]
        return [result.reward for result in results]


def _with_count(item: Item, ids_of_turns: Sequence[Sequence[int]]) -> Item:
    """The item with the token count of its turns, where ms-swift gives them."""
    count = sum(len(ids) for ids in ids_of_turns)
    return dataclasses.replace(item, response_token_count=count or None)


def _prompt_of(messages: Sequence[Any]) -> Sequence[Any]:
    """A dialogue without the completion, which ms-swift puts at its end."""
    ended = bool(messages) and messages[-1].get("role") == "assistant"
    return messages[:-1] if ended else messages


orms["assay"] = AssayReward
