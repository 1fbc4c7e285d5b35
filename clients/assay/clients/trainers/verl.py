"""Reward functions for verl (0.7.1 to 0.9.1): one for each sample, awaited or not, and for a batch.

    reward.custom_reward_function.path=pkg://assay.clients.trainers.verl
    reward.custom_reward_function.name=compute_score_async
    +reward.custom_reward_function.reward_kwargs.target=127.0.0.1:50051

Options come from `reward_kwargs` and the environment (`assay.clients.trainers.common.settings`),
and besides

    tasks        a mapping from the data's `data_source` to a task; without it that is the task
    components   names of components to log, as `component_NAME`
    parameters   parameters of the verifier; those of a row's `extra_info["parameters"]` go before

Policies for a fault (docs/trainers/verl.md):

1. "raise", the default: verl's V1 trainer leaves the sample out of its group; older ones stop.
2. "mask": the score is NaN, which verl's own estimators would spread over the group: it needs
`algorithm.adv_estimator=assay_grpo`, of `assay.clients.trainers.verl_manager`.

There is no key `acc`: once a sample has it, verl's validation counts samples without a judgement as
`acc` 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.clients.trainers.common.scoring import score, score_awaited
from assay.clients.trainers.common.verl_rows import answer_of, broken, item_of, read_options


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    **reward_kwargs: Any,
) -> dict[str, Any]:
    """The score of one response, as verl's reward managers and its `remote` manager call it.

    Raises:
        FaultError: a fault, and the policy is "raise".
        ConfigError: a setting or a ground truth is wrong.
    """
    options = read_options(reward_kwargs)
    if (fault := broken(extra_info)) is not None:
        return answer_of(options, fault)
    item = item_of(options, data_source, solution_str, ground_truth, extra_info)
    return answer_of(options, score(options.settings, [item])[0])


async def compute_score_async(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    **reward_kwargs: Any,
) -> dict[str, Any]:
    """As `compute_score`, awaited: samples that wait at the same time travel in one call.

    verl's `remote` manager cannot await.

    Raises:
        FaultError: a fault, and the policy is "raise".
        ConfigError: a setting or a ground truth is wrong.
    """
    options = read_options(reward_kwargs)
    if (fault := broken(extra_info)) is not None:
        return answer_of(options, fault)
    item = item_of(options, data_source, solution_str, ground_truth, extra_info)
    return answer_of(options, (await score_awaited(options.settings, [item]))[0])


def compute_score_batch(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any] | None],
    **reward_kwargs: Any,
) -> list[dict[str, Any]]:
    """The scores of a batch, as the `batch` manager of verl's older trainer calls it.

    Raises:
        FaultError: a fault, and the policy is "raise".
        ConfigError: a setting or a ground truth is wrong.
    """
    options = read_options(reward_kwargs)
    rows = zip(data_sources, solution_strs, ground_truths, extra_infos, strict=True)
    items = [item_of(options, *row, id=str(number)) for number, row in enumerate(rows)]
    return [answer_of(options, result) for result in score(options.settings, items)]
