"""TRL's GRPOTrainer with our rollouts, our advantages, our loss and our critic inside.

What stays TRL's: the loop, the optimizer and its schedule, mixed precision, gradient accumulation
and checkpointing, distribution over processes, the fused log-probabilities, the reference model,
weight sync to vLLM, reporting.

Written against trl 1.16.0; tests/contract/test_trl_surface.py pins what is overridden here, and
what is called. The methods, and why:

    _generate_and_score_completions  our rollouts instead: draws, streams to the services, refills
    _prepare_inputs                  mini-batches that do not depend on the number of processes, and
                                     what each holds, so that its means are exact; with periodic
                                     asynchrony, micro-batches as soon as they are there
    _compute_loss                    the loss that the settings compose
    training_step                    the critic learns beside the policy
    create_optimizer                 of shards: an evaluation leaves the head of FSDP2 gathered
    _save_checkpoint                 write beside, then publish by one rename (core/publishing.py)
    _load_optimizer_and_scheduler    read back what save_beside added
    create_model_card                none: a checkpoint is not a publication
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

import torch
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.utils import get_config_model_id, split_tensor_dict, use_adapter

from assay.trainer.core import batch as batches
from assay.trainer.core import minibatches, objective
from assay.trainer.core.batch import Across, Batch, Scored, scored_stretches
from assay.trainer.core.hooks import Hooks
from assay.trainer.core.publishing import Published
from assay.trainer.core.reference import Reference
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.pretraining import measure
from assay.trainer.critic.trunk import TrunkCritic
from assay.trainer.engines.drift import DriftReport, alarm, drift
from assay.trainer.engines.models import reshard, shard
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import Collected, Group, Place, Rollout, place
from assay.trainer.settings.config import Config
from assay.trainer.settings.registry import loss_of

ROLLOUT_STATE = "rollout_state.pt"
CRITIC = "critic"


class Source(Protocol):
    """Where a step's groups come from: a Collector, or one of its kind."""

    def collect(self, policy_step: int) -> Collected:
        """Groups, or stretches, for one step."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes up where `state_dict` was asked."""
        ...


class InParts(Protocol):
    """Micro-batches that come while their step is still being drawn."""

    def following(self) -> Batch:
        """The next micro-batch, with counts; waits for it."""
        ...

    def settled(self, loss: torch.Tensor, micro: Batch, *, last: bool) -> torch.Tensor:
        """A micro-batch has gone through backward.

        Args:
            loss: of it.
            micro: as `following` gave it.
            last: whether the weights move now.

        Returns:
            What to report for it, so that the reports add up to the step's loss.
        """
        ...


class PolicyTrainer(Published, GRPOTrainer):
    """Trains a policy on judged rollouts, by the method that the settings compose.

    Args:
        config: of the run.
        make_source: makes what rollouts come from, given this trainer.
        score: what a step's responses earn, group after group.
        hooks: of the methods that are on.
        make_critic: makes the critic, given this trainer; None for methods without.
        on_broken: called with the tensors and rollouts of a micro-batch whose loss is no number;
            returns what to tell.
        check_critic: called with the explained variance before the policy's first update; may
            raise.
        *args: as for GRPOTrainer.
        **kwargs: as for GRPOTrainer.

    Attributes:
        collected: what the latest step was given.
        judged: judged samples among the latest step's, over all processes.
        signal_ratio: share of the latest step's groups with an advantage other than 0.
        assemble_s: seconds that the latest step took for log-probabilities and values before its
            first update.
        drift_alarm: the latest warning about the sampler's log-probabilities, if there was one.
        shaped_rewards: of this process's judged rollouts of the latest step, by place.
        mean_advantages: over a response's tokens in the loss, of the same.
    """

    def __init__(
        self,
        *args: Any,
        config: Config,
        make_source: Callable[[PolicyTrainer], Source],
        score: Callable[[Sequence[Group]], list[Scored]],
        hooks: Sequence[Hooks] = (),
        make_critic: Callable[[PolicyTrainer], Critic | TrunkCritic | None] = lambda _trainer: None,
        on_broken: Callable[[Batch, float], str] = lambda _batch, loss: f"the loss is {loss}",
        check_critic: Callable[[float], None] = lambda _explained: None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        policy: Any = shard(self.accelerator, self.model)
        self.model = self.model_wrapped = policy
        self.reference: Reference | None = None
        if config.method.loss.kl_most and not config.model.lora.rank:
            offload = "reference" in config.model.offload
            self.reference = Reference(self, get_config_model_id(policy.config), offload=offload)
        self.config = config
        self.hooks = tuple(hooks)
        self._score = score
        self._own = loss_of(config.method.loss).own(config.method)
        self._on_broken = on_broken
        self._check_critic = check_critic
        self.source = make_source(self)
        self.critic = make_critic(self)
        self.across = Across(self._gather_rows, self.accelerator.process_index)
        self.collected = Collected([], [])
        self.judged = 0
        self.signal_ratio = 0.0
        self.assemble_s = 0.0
        self.drift_alarm: str | None = None
        self.shaped_rewards: dict[Place, float] = {}
        self.mean_advantages: dict[Place, float] = {}
        self._fresh = False
        self._micro: Batch = {}
        self._sums: dict[str, list[torch.Tensor]] = defaultdict(
            lambda: [torch.zeros((), device=self.accelerator.device) for _ in range(2)]
        )
        self._peaks: dict[str, torch.Tensor] = {}
        self._drift = DriftReport()
        self._ranks = AccelerateRanks(self.accelerator)
        made = (hook.in_parts(self) for hook in self.hooks)
        self._parts = next(filter(None, made), None)

    def close(self) -> None:
        """Ends what is drawn beside the training. May be called twice."""
        closes = getattr(self.source, "close", None)
        if closes is not None:
            closes()

    # -- the rollout ------------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        """A step's batch; what the data loader brings is a placeholder."""
        del inputs
        if isinstance(self.critic, Critic):
            self.critic.rest()
        self.collected = self.source.collect(self.state.global_step)
        started = time.perf_counter()
        batch = self.assemble(self.collected)
        self._remember(batch)
        self.assemble_s = time.perf_counter() - started
        self._fresh = True
        batch["row"] = torch.arange(len(batch["rewards"]), device=self.accelerator.device)
        return batch

    def _remember(self, batch: Batch) -> None:
        """What became of each rollout, for the tables of samples."""
        places = [place(row) for row in self.collected.rows]
        mask_BT = batch["loss_mask"]
        means_B = (batch["advantages"] * mask_BT).sum(dim=1) / mask_BT.sum(dim=1).clamp(min=1)
        rewards = zip(places, batch["rewards"].tolist(), strict=True)
        self.shaped_rewards = {where: reward for where, reward in rewards if reward == reward}  # noqa: PLR0124  # NaN: a fault
        self.mean_advantages = dict(zip(places, means_B.tolist(), strict=True))

    def assemble(self, collected: Collected) -> Batch:
        """The tensors of a step, with log-probabilities, values and advantages; observed."""
        batch = self.assembled(collected)
        self._observe_advantages(batch)
        self._observe_shaped(batch)
        return batch

    @torch.no_grad()
    def assembled(self, collected: Collected) -> Batch:
        """The tensors of a step, or of a part of it, with log-probabilities and advantages."""
        method, updates = self.config.method, self.config.updates_per_rollout
        batch = self.padded(collected)
        self.judged = int(self.accelerator.reduce((~batch["rewards"].isnan()).sum()))
        kl_in_reward = bool(method.loss.kl_most) and method.loss.kl_place == "reward"
        computed = self._logps(self.model, batch) if updates > 1 or kl_in_reward else None
        decoupled = method.loss.importance_correction == "decoupled"
        batch["old_logps"] = batches.old_logps(
            batch, computed if updates > 1 else None, decoupled=decoupled
        )
        if method.loss.kl_most:
            batch["ref_logps"] = self._reference_logps(batch)
        if self.critic is None:
            advantages_BT = batches.group_advantages(
                batch,
                method.advantage,
                self.config.rollout.group_size,
                self.across,
                hooks=self.hooks,
                step=self.state.global_step // updates,
            )
        else:
            if computed is not None:
                batch["kl_logps"] = computed
            batch["value_mask"] = batches.value_mask(batch)
            batch["values"] = self.critic.values(batch, self.args.per_device_train_batch_size)
            advantages_BT, batch["returns"], lam_B = batches.critic_advantages(
                batch, method, self.hooks
            )
            self._observe_returns(batch, lam_B)
        batch["advantages"] = batches.refined(advantages_BT, batch, method.advantage, self.across)
        for hook in self.hooks:
            hook.credited(batch, self.judged)
            for name, value in hook.seen.items():
                self._metrics["train"][name].append(value)
            hook.seen.clear()
        return batch

    def padded(self, collected: Collected) -> Batch:
        """The tensors of rollouts, before any model has seen them."""
        stretches = collected.stretches
        scored = (
            batches.without_left_out(self._scored(collected.groups), collected)
            if stretches is None
            else scored_stretches(stretches, self._scored)
        )
        batch = batches.pad(
            scored,
            pad_id=self._tokenizer.pad_token_id,
            policy_step=self.state.global_step,
            device=self.accelerator.device,
        )
        for hook in self.hooks:
            batch = hook.mark(batch, scored, collected)
        return batch

    def _scored(self, groups: Sequence[Group]) -> list[Scored]:
        """Rollouts with what trains; one whose judgement turns out to be unusable is a fault."""
        scored = self._score(groups)
        rollouts = [rollout for group in groups for rollout in group]
        refused = {
            id(rollout): item.rollout
            for rollout, item in zip(rollouts, scored, strict=True)
            if item.rollout is not rollout and isinstance(item.rollout, Rollout)
        }
        if refused:
            self.collected.judged = [refused.get(id(r), r) for r in self.collected.judged]
        return scored

    def _logps(self, model: Any, batch: Batch) -> torch.Tensor:
        """Log pi of each response token (B, T), without gradient."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        logps: torch.Tensor = self._get_per_token_logps_and_entropies(
            model,
            ids,
            mask,
            batch["completion_ids"].shape[1],
            batch_size=self.args.per_device_train_batch_size,
        )[0]
        return logps

    def _reference_logps(self, batch: Batch) -> torch.Tensor:
        if self.reference is not None:
            with self.reference.used() as model:
                return self._logps(model, batch)
        model = self.accelerator.unwrap_model(self.model)
        with use_adapter(model, adapter_name=None):
            return self._logps(self.model, batch)

    def _gather_rows(self, rows: torch.Tensor) -> torch.Tensor:
        if self.accelerator.num_processes == 1:
            return rows
        if rows.dim() > 1:
            rows = self.accelerator.pad_across_processes(rows, dim=1)
        gathered: torch.Tensor = self.accelerator.gather(rows)
        return gathered

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        """The micro-batch that is next; in a fresh rollout, first what each mini-batch holds."""
        if self._parts is not None:
            return self._parts.following()
        inputs: dict[str, Any] = super()._prepare_inputs(generation_batch)
        if self._fresh:
            self._fresh = False
            micro_batches: Any = self._cut(self._buffered_inputs)
            self._buffered_inputs = micro_batches
            window = self.args.gradient_accumulation_steps
            for start in range(0, len(micro_batches), window):
                self._count(micro_batches[start : start + window])
            inputs = micro_batches[self._step % len(micro_batches)]
        return inputs

    def conclude(self, whole: Collected, seen: Batch, *, judged: int) -> None:
        """A step whose rollouts came part by part is all there.

        Args:
            whole: what is told of it.
            seen: `advantages`, `loss_mask` and `rewards` of all its rows.
            judged: responses with a judgement.
        """
        self.collected, self.judged = whole, judged
        self._remember(seen)
        self._observe_advantages(seen)
        self._observe_shaped(seen)

    def _cut(self, shuffled: Any) -> list[Batch]:
        """The rollout's micro-batches, cut so that the number of processes does not matter."""
        batch: Batch = {name: torch.cat([part[name] for part in shuffled]) for name in shuffled[0]}
        rows = batch["row"].argsort()
        order = minibatches.order(
            len(rows),
            self.config.optim.mini_batches,
            process=self.accelerator.process_index,
            processes=self.accelerator.num_processes,
            seed=self.config.run.seed,
            step=self.state.global_step,
        )
        chosen = rows[order]
        micro_batches: Any = split_tensor_dict(
            {name: values[chosen] for name, values in batch.items()}, len(shuffled)
        )
        return list(micro_batches)

    def _observe_shaped(self, batch: Batch) -> None:
        """The mean of what trains, over judged rollouts of all processes."""
        rewards_N = self.across.gather(batch["rewards"])
        if self.judged and any(hook.changes_rewards for hook in self.hooks):
            self._metrics["train"]["shaped_reward"].append(float(rewards_N.nanmean()))
        self._metrics["train"]["tokens"].append(
            float(self.accelerator.reduce(batch["loss_mask"].sum()))
        )
        idle_B = ~batch["rewards"].isnan() & ~batch["loss_mask"].any(dim=1)
        if self.judged:
            left_out = float(self.accelerator.reduce(idle_B.sum())) / self.judged
            self._metrics["train"]["left_out_ratio"].append(left_out)

    def _count(self, micro_batches: Sequence[Batch]) -> None:
        """Writes a mini-batch's counts, over all processes, into its micro-batches."""
        none = torch.zeros((), device=self.accelerator.device)
        local = torch.zeros(4, device=self.accelerator.device)
        for micro in micro_batches:
            counts = objective.count(micro)
            values = micro["value_mask"].sum() if "value_mask" in micro else none
            local += torch.stack(
                [counts.tokens, counts.rows, counts.positive_tokens, values]
            ).float()
        counted = self.accelerator.reduce(local).unbind()
        names = ("window_tokens", "window_rows", "window_positive", "window_value_tokens")
        for micro in micro_batches:
            micro.update(zip(names, counted, strict=True))

    def create_optimizer(self, model: Any = None) -> Any:
        """Of the weights as they are sharded."""
        reshard(self.model)
        return super().create_optimizer(model)

    # -- the update -------------------------------------------------------------------------------

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        """The micro-batch's share of its mini-batch's loss.

        Raises:
            TrainingStoppedError: it is not a number.
        """
        self._micro = inputs
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        trunk = self.critic if isinstance(self.critic, TrunkCritic) else None
        with trunk.watch() if trunk else nullcontext():
            logps_BT, entropies_BT, aux_loss = self._get_per_token_logps_and_entropies(
                model,
                ids,
                mask,
                inputs["completion_ids"].shape[1],
                compute_entropy=True,
                compute_aux_loss=self.aux_loss_enabled,
            )
        counts = objective.Counts(
            inputs["window_tokens"], inputs["window_rows"], inputs["window_positive"]
        )
        outcome = objective.policy_loss(
            logps_BT,
            entropies_BT,
            inputs,
            self.config.method.loss,
            counts,
            max_length=self.config.rollout.max_new_tokens,
            own=self._own,
            hooks=self.hooks,
        )
        # gradients are averaged over processes, but the loss is a sum over them
        loss = outcome.loss * self.accelerator.num_processes
        if self.aux_loss_enabled:
            loss = loss + self.router_aux_loss_coef * aux_loss / (
                self.current_gradient_accumulation_steps
            )
        if trunk:
            value_loss, sums = trunk.loss_from_last_forward(
                inputs["returns"],
                inputs["values"],
                inputs["value_mask"],
                tokens=inputs["window_value_tokens"],
            )
            loss = loss + value_loss
            self._observe_critic(sums)
        if not bool(loss.isfinite()):
            raise TrainingStoppedError(self._on_broken(inputs, float(loss.detach())))
        self._observe(outcome, logps_BT.detach(), inputs)
        return loss

    def training_step(
        self, model: Any, inputs: Any, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """The policy's micro-batch, then the critic's."""
        loss: torch.Tensor = super().training_step(model, inputs, num_items_in_batch)
        last = self.accelerator.sync_gradients
        if self._parts is not None:
            loss = self._parts.settled(loss, self._micro, last=last)
        if isinstance(self.critic, Critic):
            micro = self._micro
            sums = self.critic.backward(
                micro,
                micro["returns"],
                micro["values"],
                micro["value_mask"],
                tokens=micro["window_value_tokens"],
                sync=last,
            )
            self._observe_critic(sums)
        if self.critic is not None and last:
            moved = self.critic.step()
            self._metrics["train"]["value_grad_norm"].append(moved["grad_norm"])
            self._metrics["train"]["value_learning_rate"].append(moved["lr"])
        if last:
            self._publish()
        return loss

    @property
    def moves(self) -> bool:
        """Whether the mini-batch at hand has anything in its loss."""
        return bool(self._micro) and bool(self._micro["window_tokens"] > 0)

    # -- what is seen -----------------------------------------------------------------------------

    def _observe(self, outcome: objective.Outcome, logps_BT: torch.Tensor, batch: Batch) -> None:
        self._add_sums(outcome.sums)
        for name, value in outcome.peaks.items():
            self._peaks[name] = torch.maximum(self._peaks.get(name, value), value)
        if self._first_pass:
            fresh_BT = batch["drawn"] & ~batch["stale"].unsqueeze(1)
            for hook in self.hooks:
                fresh_BT = hook.sampled(fresh_BT)
            self._drift = self._drift + drift(logps_BT, batch["sampler_logps"], fresh_BT)

    @property
    def _first_pass(self) -> bool:
        """Whether no update has been made since the rollout."""
        return self.state.global_step % self.config.updates_per_rollout == 0

    def _add_sums(self, sums: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> None:
        for name, (total, weight) in sums.items():
            kept = self._sums[name]
            kept[0] = kept[0] + total
            kept[1] = kept[1] + weight

    def _observe_returns(self, batch: Batch, lam_B: torch.Tensor) -> None:
        """How much of the returns the critic explains, before it learns from them."""
        metrics = self._metrics["train"]
        seen = measure(batch["values"], batch["returns"], batch["value_mask"], self.accelerator)
        metrics["explained_variance"].append(seen.explained_variance)
        if self.state.global_step == 0 and self.collected.stretches is None:
            self._check_critic(seen.explained_variance)
        metrics["value_mean"].append(seen.values_mean)
        metrics["return_mean"].append(seen.returns_mean)
        metrics["return_std"].append(seen.returns_std)
        lams = self.across.gather(lam_B)
        metrics["lam_mean"].append(float(lams.float().mean()))
        if self.config.method.advantage.length_adaptive_alpha:
            floor = self.config.method.advantage.min_lam
            metrics["lam_floor_share"].append(float((lams <= floor).float().mean()))

    def _observe_critic(self, sums: Mapping[str, torch.Tensor]) -> None:
        self._add_sums(
            {
                "value_loss": (sums["loss"], sums["tokens"]),
                "value_clipped": (sums["clipped"], sums["tokens"]),
                "value_outside": (sums["outside"], sums["tokens"]),
            }
        )

    def _observe_advantages(self, batch: Batch) -> None:
        mask_BT = batch["loss_mask"]
        whole = self.collected.stretches is None
        group_size = self.config.rollout.group_size if whole else 1
        any_P = ((batch["advantages"] != 0) & mask_BT).any(dim=1).view(-1, group_size).any(dim=1)
        self.signal_ratio = float(self.across.gather(any_P.float()).mean())
        advantages = self.across.gather(batch["advantages"])[
            self.across.gather(mask_BT.float()).bool()
        ]
        if advantages.numel() > 1:
            self._metrics["train"]["advantage_std"].append(float(advantages.std()))

    def _publish(self) -> None:
        """One optimizer step's means, over all its micro-batches and processes, to TRL's log."""
        names = sorted(self._sums)
        if names:
            local = torch.stack([torch.stack(self._sums[name]).double() for name in names])
            for name, (total, weight) in zip(
                names, self.accelerator.reduce(local).tolist(), strict=True
            ):
                if weight > 0:
                    self._metrics["train"][name].append(total / weight)
        for name in sorted(self._peaks):
            peak = self.accelerator.gather(self._peaks[name].reshape(1)).max()
            self._metrics["train"][name].append(float(peak))
        self._publish_drift()
        self._sums.clear()
        self._peaks.clear()

    def _publish_drift(self) -> None:
        """Sampler against trainer, on the tokens of the pass before the first update."""
        if not self._first_pass:
            return
        total = sum(self._ranks.gather([self._drift]), DriftReport())
        self._drift = DriftReport()
        if total == DriftReport():  # every row is stale
            return
        self.drift_alarm = alarm(total, self.config.rollout.drift_alarm)
        if total.tokens:
            seen = {"drift_mean": total.mean_abs, "drift_max": total.max_abs, "drift_kl": total.kl}
            for name, value in seen.items():
                self._metrics["train"][name].append(value)

    # -- checkpoints ------------------------------------------------------------------------------

    def save_beside(self, folder: Path) -> None:
        """The critic, and where the rollouts are."""
        if self.critic is not None:
            self.critic.save(folder / CRITIC)
        state = {"source": self.source.state_dict(), "judged": self.judged}
        if self.accelerator.is_main_process:
            torch.save(state, folder / ROLLOUT_STATE)

    def _load_optimizer_and_scheduler(self, checkpoint: Any) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        folder = Path(checkpoint)
        state = torch.load(folder / ROLLOUT_STATE, weights_only=True)
        self.source.load_state_dict(state["source"])
        self.judged = state["judged"]
        if self.critic is not None:
            self.critic.load(folder / CRITIC)
