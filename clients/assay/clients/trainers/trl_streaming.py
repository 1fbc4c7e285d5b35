"""Scores each completion as its row ends, while TRL's GRPOTrainer still generates.

    reward = reward_function("127.0.0.1:50051", task="math")
    trainer = GRPOTrainer(model, reward_funcs=reward, train_dataset=rows, args=args)
    stream_rewards(trainer, reward)

It wraps two methods of one trainer: TRL 1.16's `_generate_and_score_completions`, to know the rows,
and the policy's `generate`, to see which have ended. The rewards stay the same: when TRL asks, a
row whose item equals the one sent takes its result; every other row (cut at the limit, or judged as
a group) is scored then.

Without effect: TRL's vLLM modes, continuous batching and `rollout_func`, which do not call
`generate`; several turns (tools); generation sharded over processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.clients.reward import RewardClient
from assay.clients.trainers.trl import AsyncReward, SyncReward, bare
from assay.clients.types import Item, ServerInfo
from assay.kit.errors import CallError, ConfigError


def stream_rewards(trainer: Any, reward: AsyncReward | SyncReward) -> None:
    """Has a trainer's completions scored by `reward` as they end.

    The trainer is a GRPOTrainer or a subclass, and `reward` is one of its `reward_funcs`.

    Raises:
        ConfigError: `reward` is not awaited, is none of the trainer's, or has an
            `AsyncRewardClient`; or the trainer has tools.
    """
    client = reward.client
    if not isinstance(reward, AsyncReward) or not isinstance(client, RewardClient):
        raise ConfigError("stream_rewards takes what reward_function made, from an address")
    if not any(function is reward for function in trainer.reward_funcs):
        raise ConfigError("the trainer does not have this reward function; pass one of its own")
    if trainer.tools:
        raise ConfigError(
            "a completion with tools does not end with its first turn; leave this out"
        )
    score = trainer._generate_and_score_completions  # noqa: SLF001  # there is no public seam

    def scored(inputs: Sequence[Mapping[str, Any]]) -> Any:
        model = trainer.accelerator.unwrap_model(trainer.model)
        generate = model.generate
        rows = _Rows(reward, client, trainer, inputs)

        def watched(*arguments: Any, **settings: Any) -> Any:
            criteria = [*settings.pop("stopping_criteria", ()), rows.watch]
            rows.prompt_tokens = settings["input_ids"].shape[1]
            return generate(*arguments, stopping_criteria=_listed(criteria), **settings)

        reward.early.clear()
        own = "generate" in vars(model)  # others replace it too
        model.generate = watched
        try:
            return score(inputs)
        finally:
            if own:
                model.generate = generate
            else:
                del model.generate

    trainer._generate_and_score_completions = scored  # noqa: SLF001  # as above


def _listed(criteria: Sequence[Any]) -> Any:
    from transformers import StoppingCriteriaList  # noqa: PLC0415  # TRL has it

    return StoppingCriteriaList(criteria)


class _Rows:
    """The rows of one batch, sent as they end; `prompt_tokens` is where completions begin."""

    def __init__(
        self,
        reward: AsyncReward,
        client: RewardClient,
        trainer: Any,
        inputs: Sequence[Mapping[str, Any]],
    ) -> None:
        self.prompt_tokens = 0
        self._reward = reward
        self._client = client
        self._trainer = trainer
        self._inputs = inputs
        self._ended: set[int] = set()
        self._info: ServerInfo | None = None

    def watch(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """A stopping criterion that never stops: (B, tokens so far) to (B,) False."""
        import torch  # noqa: PLC0415  # TRL has it

        ends = torch.tensor(self._trainer.eos_token_ids, device=input_ids.device)
        for row in torch.isin(input_ids[:, -1], ends).nonzero().flatten().tolist():
            if row not in self._ended:
                self._ended.add(row)
                self._send(row, input_ids[row, self.prompt_tokens :].tolist())
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    def _send(self, row: int, ids: list[int]) -> None:
        if self._info is None:
            try:
                self._info = self._client.list_verifiers()
            except CallError:
                self._ended.update(range(len(self._inputs)))
                return
        item = replace(self._item(row, ids), id="", group_id="")
        served = self._info.find(item.verifier, item.task)
        if served is not None and not served.needs_group:
            self._reward.early[row] = bare(item), self._client.submit_one(item)

    def _item(self, row: int, ids: list[int]) -> Item:
        cells = self._inputs[row]
        [text] = self._trainer.processing_class.batch_decode([ids], skip_special_tokens=True)
        said = text if isinstance(cells["prompt"], str) else [_message(text)]
        columns: dict[str, Any] = {k: [value] for k, value in cells.items() if k != "prompt"}
        columns["trainer_state"] = self._trainer.state
        [item] = self._reward.reader.items([cells["prompt"]], [said], [ids], columns)
        return item


def _message(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}
