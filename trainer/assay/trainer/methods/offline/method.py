"""The hooks of stored rollouts: where a step's responses are from, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay.trainer.algos.offline import step_numbers
from assay.trainer.algos.packing import TOGETHER
from assay.trainer.core.batch import Batch, Scored, filled, pad
from assay.trainer.core.build import Workshop, encoder
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.offline.mixing import MixedSource, row_by_row
from assay.trainer.methods.offline.source import BEFORE, StoredSource
from assay.trainer.methods.offline.stored import Stored, read_stored
from assay.trainer.methods.offline.surrogates import BASELINE, BETTER, STEPS
from assay.trainer.recipes.hooks import RunHooks, RunSession
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.types import Collected, Rollout, Source
from assay.trainer.settings.config import Config

_ROWS_AT_A_TIME = 256


class Offline(RunHooks):
    """Responses that were drawn and judged before."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._stored: Stored | None = None
        self._sources: list[StoredSource] = []
        self._tokenizer: Any = None
        self._ends: dict[int, bool] = {}
        self._mixes = config.method.offline.mix != "none"
        self._supervised = not self._mixes

    def source(self, shop: Workshop, *, whole: bool) -> Source | None:
        """See Hooks."""
        del whole
        if self._mixes:
            return None
        made = StoredSource(self.config, shop.ranks)
        if self._stored is not None:
            made.open(self._stored)
        self._sources.append(made)
        return made

    def around(self, source: Source, shop: Workshop) -> Source:
        """See Hooks: steps of stored responses beside steps of drawn ones."""
        if not self._mixes:
            return source
        stored = StoredSource(row_by_row(self.config), shop.ranks)
        self._sources.append(stored)
        return MixedSource(source, stored, self.config, shop.trainer)

    def prepare(
        self, session: RunSession, trainer: PolicyTrainer, stream: PromptStream, *, resumed: bool
    ) -> bool:
        """See RunHooks: reads the rows, and has the model as it was loaded say what they are to it.

        Raises:
            ConfigError: they cannot be used.
        """
        del stream, resumed
        offline, policy = self.config.method.offline, session.policy
        self._tokenizer = policy.tokenizer
        asked = session.problems.eval
        stored = self._stored = read_stored(
            self.config,
            encoder(policy),
            policy.tokenizer,
            context=getattr(policy.model.config, "max_position_embeddings", None) or 0,
            held_out=frozenset(key for one in asked for key in (one.question, one.messages)),
            note=session.display.note,
        )
        session.display.note(f"stored rollouts: {stored.summary(offline.rows)}")
        for source in self._sources:
            source.open(stored)
        if offline.reference == "start":
            steps = max(self.config.run.steps, self.config.method.critic.pretrain_steps)
            groups = steps * self.config.rollout.prompts_per_step
            self._refer(stored, trainer, self._sources[0].used(groups))
        return True

    @property
    def _opened(self) -> Stored:
        if self._stored is None:
            raise RuntimeError("the stored rollouts are read by `prepare`, before the first step")
        return self._stored

    def _refer(self, stored: Stored, trainer: PolicyTrainer, places: Sequence[int]) -> None:
        """What the model as loaded says of these responses; the longest of them first."""
        responses = stored.responses
        ordered = sorted(places, key=lambda n: -len(responses[n].prompt_ids + responses[n].ids))
        model: Any = trainer.model
        model.eval()
        for start in range(0, len(ordered), _ROWS_AT_A_TIME):
            some = ordered[start : start + _ROWS_AT_A_TIME]
            batch = pad(
                [Scored(_bare(stored, number), None) for number in some],
                pad_id=self._tokenizer.pad_token_id,
                policy_step=BEFORE,
                device=trainer.accelerator.device,
            )
            with torch.no_grad():
                logps_BT = trainer.logps(model, batch, trainer.packing.passes(batch))
            for number, row in zip(some, logps_BT.float().cpu().numpy(), strict=True):
                stored.reference[number] = row[: len(responses[number].ids)].copy()
        model.train()

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks: what the policy wrote, the prompt's baseline, steps, and who is a pair."""
        del collected
        self._supervised = all(item.rollout.policy_step == BEFORE for item in scored)
        if not self._supervised:
            return batch
        stored, device = self._opened, batch["loss_mask"].device
        places = [self._sources[0].group(draw)[index] for draw, index in map(_place, scored)]
        rows = [stored.responses[number] for number in places]
        width = batch["completion_ids"].shape[1]
        own_BT = torch.zeros(len(rows), width, dtype=torch.bool)
        for number, row in enumerate(rows):
            for start, end in row.own:
                own_BT[number, start:end] = True
        own_BT = own_BT.to(device)
        ends = [[self._ends_step(token) for token in row.ids] for row in rows]
        columns = {
            "own": batch["own"] & own_BT,
            "loss_mask": batch["loss_mask"] & own_BT,
            BASELINE: torch.tensor([row.baseline for row in rows], device=device),
            STEPS: step_numbers(filled(ends, False, torch.bool)).to(device),
        }
        if self.config.method.offline.pairs:
            draws, samples = zip(*map(_place, scored), strict=True)
            columns[TOGETHER] = torch.tensor(draws, device=device)
            columns[BETTER] = torch.tensor([index == 0 for index in samples], device=device)
        return batch | columns

    def _ends_step(self, token: int) -> bool:
        if token not in self._ends:
            text = self._tokenizer.decode([token])
            self._ends[token] = self.config.method.offline.step_end in text
        return self._ends[token]

    def credited(self, batch: Batch, judged: int) -> None:
        """See Hooks: what learns from a critic's steps, or from demonstrations, leaves it alone.

        Demonstrations have the gradient of their likelihood: the advantage 1, and a ratio of 1.
        """
        del judged
        if self._mixes and self._supervised:
            batch["advantages"] = batch["loss_mask"].to(batch["advantages"].dtype)
            batch["old_logps"] = torch.full_like(batch["old_logps"], float("nan"))
            if "value_mask" in batch:
                batch["value_mask"] = torch.zeros_like(batch["value_mask"])
        if self.config.method.loss.objective == "direct-advantage":
            batch["value_mask"] = torch.zeros_like(batch["value_mask"])


def _place(item: Scored) -> tuple[int, int]:
    return item.rollout.request.draw.number, item.rollout.request.index


def _bare(stored: Stored, number: int) -> Rollout:
    """A response for a forward pass."""
    one = stored.responses[number]
    request = Request(Draw(number, one.problem, one.prompt_ids), 0)
    return Rollout(request, Response(one.ids, one.text, None, one.truncated), one.result, BEFORE)
