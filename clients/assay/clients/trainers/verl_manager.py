"""A reward manager and an advantage estimator for verl (0.8 to 0.9.1). Imports verl.

    reward.reward_manager.source=importlib
    reward.reward_manager.module.path=pkg://assay.clients.trainers.verl_manager
    reward.reward_manager.name=AssayRewardManager
    +reward.reward_kwargs.target=127.0.0.1:50051

Unlike `assay.clients.trainers.verl`, whose options it takes, it also sends the prompt, the number
of tokens, and the sample's group.

`algorithm.adv_estimator=assay_grpo` goes with `on_fault=mask`: GRPO (arXiv 2402.03300) over the
judgements of a group. A sample without one is left out of mean and deviation and has the advantage
0; its tokens still count in the loss's denominator, and `critic/score/mean` of the step is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
from verl.trainer.ppo.core_algos import register_adv_est

from assay.clients.trainers.common.rows import prompt_of
from assay.clients.trainers.common.scoring import score_awaited
from assay.clients.trainers.common.verl_rows import answer_of, broken, item_of, read_options


class AssayRewardManager(RewardManagerBase):
    """Scores each sample as it ends, on verl's reward loop.

    The options are in `config.reward.reward_kwargs`; `tokenizer` is the policy's; verl's other
    arguments are unused.

    Raises:
        ConfigError: an option is unknown or out of range, or no target is given.
    """

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: Any = None,
        reward_router_address: str | None = None,
        reward_model_tokenizer: Any = None,
    ) -> None:
        super().__init__(config, tokenizer, compute_score)
        self.options = read_options(dict(config.reward.get("reward_kwargs") or {}))

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """The reward of a sample; of several sequences, that of the last.

        Raises:
            FaultError: a fault, and the policy is "raise".
            ConfigError: the ground truth is no reference.
        """
        row = data[-1:][0]
        columns = row.non_tensor_batch
        if (fault := broken(columns.get("tool_extra_fields"))) is not None:
            answer = answer_of(self.options, fault)
            return {"reward_score": answer["score"], "reward_extra_info": answer}
        responses = row.batch["responses"]
        count = int(row.batch["attention_mask"][-responses.shape[-1] :].sum())
        more: dict[str, Any] = {"response_token_count": count}
        if columns.get("raw_prompt") is not None:
            more["prompt"] = prompt_of(list(columns["raw_prompt"]))
        if columns.get("uid") is not None:
            more["group_id"] = str(columns["uid"])
        item = item_of(
            self.options,
            columns["data_source"],
            self.tokenizer.decode(responses[:count], skip_special_tokens=True),
            columns["reward_model"]["ground_truth"],
            columns.get("extra_info"),
            step=(getattr(data, "meta_info", None) or {}).get("global_steps"),
            **more,
        )
        [result] = await score_awaited(self.options.settings, [item])
        answer = answer_of(self.options, result)
        return {"reward_score": answer["score"], "reward_extra_info": answer}


@register_adv_est("assay_grpo")
def grpo_over_judgements(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Sequence[Any],
    *,
    epsilon: float = 1e-6,
    norm_adv_by_std_in_grpo: bool = True,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """GRPO's advantages, where a reward of NaN is a sample without a judgement.

    Equal to verl's `grpo` without NaN.

    Args:
        token_level_rewards: (B, T); a row that sums to NaN has no judgement.
        response_mask: (B, T), 1 for tokens of the response.
        index: (B,) the group of each row.
        epsilon: added to the deviation.
        norm_adv_by_std_in_grpo: divide by the group's deviation; `config` takes precedence.
        config: verl's `algorithm`.

    Returns:
        Advantages and returns, both (B, T); 0 in rows without a judgement, and in the only judged
            row of several.
    """
    if config is not None:
        norm_adv_by_std_in_grpo = config.get("norm_adv_by_std_in_grpo", norm_adv_by_std_in_grpo)
    with torch.no_grad():
        scores = token_level_rewards.sum(dim=-1)
        advantages = torch.zeros_like(scores)
        groups: dict[Any, list[int]] = {}
        for row, group in enumerate(index):
            groups.setdefault(group, []).append(row)
        for rows in groups.values():
            judged = [row for row in rows if not scores[row].isnan()]
            found = scores[judged]
            if len(rows) == 1:  # as verl has it: a group of one has no baseline
                mean, deviation = found.new_zeros(()), found.new_ones(())
            elif len(judged) < 2:
                continue
            else:
                mean, deviation = found.mean(), found.std()
            scale = deviation + epsilon if norm_adv_by_std_in_grpo else 1.0
            advantages[judged] = (found - mean) / scale
        spread = advantages.unsqueeze(-1) * response_mask
    return spread, spread
