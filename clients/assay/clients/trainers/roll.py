"""A reward worker for ROLL (0.3.0), and a rollout loop that drops faults.

docs/trainers/roll.md has the configuration. The worker raises `FaultError` for a fault. With ROLL's
own loop that ends the run ("raise"). `AssayRolloutLoop` gives up the prompt with all its samples,
because ROLL's groups have a fixed size, and ROLL draws another ("drop"); a validation has no other
prompt, so there a fault ends the run.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from roll.distributed.executor.worker import Worker
from roll.distributed.scheduler.decorator import Dispatch, register
from roll.distributed.scheduler.protocol import DataProto
from roll.distributed.scheduler.user_defined_rollout_loop import UserDefinedRolloutLoop
from roll.models.model_providers import default_tokenizer_provider

from assay.clients.trainers.common.faults import FaultError, judgement_of
from assay.clients.trainers.common.scoring import score
from assay.clients.trainers.common.settings import read_settings
from assay.clients.trainers.common.single import reader_of

_COLUMNS = ("verifier", "task", "parameters")


class AssayRewardWorker(Worker):
    """Asks a reward server; its settings are in the environment (`system_envs`).

    It reads these columns of the batch: "ground_truth" (or "reference", "answer"), "verifier",
    "task", "parameters", "prompt_id".
    """

    def __init__(self, worker_config: Any) -> None:
        super().__init__(worker_config=worker_config)
        self.rank_info.dp_rank = self.rank_info.rank
        self.rank_info.dp_size = self.rank_info.world_size
        self.tokenizer = default_tokenizer_provider(model_args=self.worker_config.model_args)
        self.settings = read_settings()

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def initialize(self, pipeline_config: Any) -> None:
        """Does nothing: the first call connects."""

    @register(dispatch_mode=Dispatch.DP_MP_COMPUTE, clear_cache=False)
    def compute_rewards(self, data: Any) -> Any:
        """The rewards of a batch, [batch_size] float32, without rewards of single tokens.

        Raises:
            FaultError: a sample has no judgement.
        """
        prompts = self.tokenizer.batch_decode(data.batch["prompts"], skip_special_tokens=True)
        responses = self.tokenizer.batch_decode(data.batch["responses"], skip_special_tokens=True)
        step = (getattr(data, "meta_info", None) or {}).get("global_step")
        reader = reader_of(self.settings, trainer="roll", step=step)
        columns = columns_of(data.non_tensor_batch)
        items = reader.items(prompts, responses, None, columns)
        results = score(self.settings, items)
        rewards = torch.tensor([judgement_of(result).reward for result in results])
        return DataProto.from_dict(
            tensors={
                "token_level_rewards": torch.zeros_like(
                    data.batch["responses"], dtype=rewards.dtype
                ),
                "response_level_rewards": rewards,
                "scores": rewards.clone(),
            }
        )


def columns_of(non_tensor_batch: Any) -> dict[str, list[Any]]:
    """The columns for judging; ROLL's "ground_truth" is a reference."""
    columns = {name: list(non_tensor_batch[name]) for name in _COLUMNS if name in non_tensor_batch}
    for name in ("reference", "ground_truth", "answer"):
        if name in non_tensor_batch:
            columns["reference"] = list(non_tensor_batch[name])
            break
    return columns


class AssayRolloutLoop(UserDefinedRolloutLoop):
    """ROLL's loop, but it gives up a prompt with a fault and draws another."""

    async def _generate_and_reward(self, context: Any, req: Any, domain: str) -> Any:
        try:
            return await super()._generate_and_reward(context=context, req=req, domain=domain)
        except FaultError as error:
            if context.is_val:
                raise
            logging.getLogger(__name__).warning(
                "prompt %s is dropped: %s", context.prompt_id, error
            )
            return None
