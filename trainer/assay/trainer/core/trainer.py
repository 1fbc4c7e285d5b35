"""TRL's GRPOTrainer with our rollouts, our advantages, our loss and our critic inside.

TRL keeps the loop, the optimizer and its schedule, mixed precision, gradient accumulation and
checkpointing, distribution over processes and the fused log-probabilities.

Written against trl 1.16.0; tests/contract/test_trl_surface.py pins what is overridden and called:

    _generate_and_score_completions  our rollouts: draws, streams to the services, refills
    _prepare_inputs                  gives the micro-batch at hand
    _compute_loss                    the configured loss
    training_step                    a mini-batch, in as many micro-batches as its rows are packed
                                     into: TRL knows one number for all. Mini-batches are counted
                                     and do not depend on the number of processes, so that means
                                     are exact. The critic learns beside the policy
    create_optimizer                 of shards: an evaluation leaves the head of FSDP2 gathered
    _save_checkpoint                 write beside, then publish by one rename (core/publishing.py)
    _load_optimizer_and_scheduler    read back what save_beside added
    create_model_card                none: a checkpoint is not a publication
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import DistributedType
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.utils import get_config_model_id, use_adapter

from assay.kit.runs import checkpoints
from assay.kit.runs.environment import return_freed_memory
from assay.trainer.algos import packing
from assay.trainer.core import batch as batches
from assay.trainer.core import minibatches, objective
from assay.trainer.core.batch import Across, Batch, Scored, scored_slots
from assay.trainer.core.hooks import Hooks, load_states, measured, states_of
from assay.trainer.core.publishing import Published
from assay.trainer.core.reference import Reference
from assay.trainer.core.timing import Timing, flops_of
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.pretraining import measure
from assay.trainer.critic.trunk import TrunkCritic
from assay.trainer.engines.drift import DriftReport, alarm, drift
from assay.trainer.engines.engine import Engine
from assay.trainer.engines.models import reshard, shard
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.sharing import with_refused
from assay.trainer.rollouts.types import Collected, Group, Place, Rollout, Source, place
from assay.trainer.settings.config import Config
from assay.trainer.settings.registry import loss_of

ROLLOUT_STATE = "rollout_state.pt"
CRITIC = "critic"


class PolicyTrainer(Published, GRPOTrainer):
    """Trains a policy on judged rollouts, by the configured method.

    Args:
        config: of the run.
        make_source: makes the source of rollouts, given this trainer.
        score: gives a step's responses their rewards, group after group.
        hooks: of active methods.
        make_critic: makes the critic, given this trainer; None for methods without.
        on_broken: called with the tensors and rollouts of a micro-batch whose loss is no number;
            returns the message.
        check_critic: called with the explained variance before the policy's first update; may
            raise.
        *args: as for GRPOTrainer.
        **kwargs: as for GRPOTrainer.

    Attributes:
        engine: answers prompts; made on first use.
        collected: rollouts of the latest step.
        judged: judged samples of the latest step, over all processes.
        signal_ratio: share of the latest step's groups with an advantage other than 0.
        assemble_s: the latest step's seconds of log-probabilities and values before its first
            update.
        drift_alarm: the latest warning about the sampler's log-probabilities, if there was one.
        shaped_rewards: of this process's judged rollouts of the latest step, by place.
        mean_advantages: over a response's tokens in the loss, of the same.
        on_batch: gets the rows of each step's batch and the batch, before the first update.
        on_entropies: gets each micro-batch of the first pass and its entropies (B, T).
        on_evaluated: gets this process's rollouts of an evaluation.
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
        self.engine: Engine | None = None
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
        self.ranks = AccelerateRanks(self.accelerator)
        self.source = make_source(self)
        self.critic = make_critic(self)
        self.across = Across(self._gather_rows, self.accelerator.process_index)
        self.packing = packing.Packing(
            config.optim.micro_batch, config.optim.micro_batch_tokens, self._most
        )
        self.timing = Timing(
            self.accelerator.device,
            flops_token=flops_of(self.model),
            peak_tflops=config.run.peak_tflops,
        )
        self.collected = Collected([], [])
        self.judged = 0
        self.signal_ratio = 0.0
        self.assemble_s = 0.0
        self.drift_alarm: str | None = None
        self.shaped_rewards: dict[Place, float] = {}
        self.mean_advantages: dict[Place, float] = {}
        self.on_batch: Callable[[Sequence[Any], Batch], None] = lambda _rows, _batch: None
        self.on_entropies: Callable[[Batch, torch.Tensor], None] = lambda _batch, _values: None
        self.on_evaluated: Callable[[Sequence[Rollout]], None] = lambda _rollouts: None
        self._fresh = False
        self._micro: Batch = {}
        self._sums: dict[str, list[torch.Tensor]] = defaultdict(
            lambda: [torch.zeros((), device=self.accelerator.device) for _ in range(2)]
        )
        self._peaks: dict[str, torch.Tensor] = {}
        self._drift = DriftReport()
        self._parts = next(filter(None, (hook.in_parts(self) for hook in self.hooks)), None)

    def close(self) -> None:
        """Ends what is drawn beside the training. May be called twice."""
        getattr(self.source, "close", lambda: None)()

    def release(self) -> None:
        """Ends the engine. May be called twice."""
        if self.engine is not None:
            self.engine.close()

    # -- the rollout ------------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        del inputs
        if isinstance(self.critic, Critic):
            self.critic.rest()
        self._return_memory()
        began = time.time()
        self.collected = self.source.collect(self.state.global_step)
        self.timing.spanned("collect", began, time.time())
        self._return_memory()
        started = time.perf_counter()
        batch = self.assemble(self.collected)
        self._remember(batch)
        self.assemble_s = time.perf_counter() - started
        self._fresh = True
        batch["row"] = torch.arange(len(batch["rewards"]), device=self.accelerator.device)
        return batch

    def _return_memory(self) -> None:
        """Between drawing and training, whose tensors differ in size: free blocks would add up."""
        if self.accelerator.device.type == "cpu":
            return_freed_memory()

    def _remember(self, batch: Batch) -> None:
        places = [place(row) for row in self.collected.rows]
        mask_BT = batch["loss_mask"]
        means_B = (batch["advantages"] * mask_BT).sum(dim=1) / mask_BT.sum(dim=1).clamp(min=1)
        rewards = zip(places, batch["rewards"].tolist(), strict=True)
        self.shaped_rewards = {where: reward for where, reward in rewards if reward == reward}  # noqa: PLR0124  # NaN: a fault
        self.mean_advantages = dict(zip(places, means_B.tolist(), strict=True))
        self.on_batch(self.collected.rows, batch)

    def assemble(self, collected: Collected) -> Batch:
        """The tensors of a step, with log-probabilities, values and advantages; observed."""
        batch = self.assembled(collected)
        measured(self.hooks, collected)
        self._observe_advantages(batch)
        self._observe_shaped(batch)
        return batch

    @torch.no_grad()
    def assembled(self, collected: Collected) -> Batch:
        """The tensors of a step, or of a part of it, with log-probabilities and advantages."""
        method, updates = self.config.method, self.config.updates_per_rollout
        batch = self.padded(collected)
        passes = self.packing.passes(batch)
        self.judged = int(self.accelerator.reduce((~batch["rewards"].isnan()).sum()))
        kl_in_reward = bool(method.loss.kl_most) and method.loss.kl_place == "reward"
        computed = None
        if updates > 1 or kl_in_reward:
            with self.timing.of("old_logps_s"):
                computed = self.logps(self.model, batch, passes)
        decoupled = method.loss.importance_correction == "decoupled"
        batch["old_logps"] = batches.old_logps(
            batch, computed if updates > 1 else None, decoupled=decoupled
        )
        if method.loss.kl_most:
            with self.timing.of("reference_s"):
                batch["ref_logps"] = self._reference_logps(batch, passes)
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
            with self.timing.of("values_s"):
                batch["values"] = self.critic.values(batch, passes)
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
        slot_rows = collected.slot_rows
        scored = (
            batches.without_left_out(self._scored(collected.groups), collected)
            if slot_rows is None
            else scored_slots(slot_rows, self._scored)
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
        """Rollouts with what trains; one with an unusable judgement is a fault."""
        scored = self._score(groups)
        rollouts = [rollout for group in groups for rollout in group]
        refused = {
            place(rollout): item.rollout.result
            for rollout, item in zip(rollouts, scored, strict=True)
            if item.rollout is not rollout and isinstance(item.rollout, Rollout)
        }
        self.collected.judged = with_refused(self.collected.judged, refused, self.ranks)
        return scored

    def logps(self, model: Any, batch: Batch, passes: Sequence[torch.Tensor]) -> torch.Tensor:
        """Log pi of each response token under a model, (B, T), pass by pass, without gradient."""
        return packing.over_passes(batch, passes, lambda rows: self._of_tokens(model, rows)[0])

    def _of_tokens(self, model: Any, batch: Batch, **wanted: Any) -> tuple[Any, Any, Any]:
        """As TRL's function: log pi and entropies (B, T), 0 on padding, and a router's loss."""
        laid = packing.laid(batch)
        shortest = int(laid.starts_S.min())
        scored = laid.ids_SL.shape[1] - shortest
        *seen, aux_loss = self._get_per_token_logps_and_entropies(
            model, laid.ids_SL, laid.mask_SL, scored, **wanted
        )
        padding_BT = ~batch["completion_mask"].bool()
        logps_BT, entropies_BT = (
            None
            if values_SK is None
            else packing.of_responses(values_SK, laid, batch, -shortest).masked_fill(
                padding_BT, 0.0
            )
            for values_SK in seen
        )
        return logps_BT, entropies_BT, aux_loss

    def _reference_logps(self, batch: Batch, passes: Sequence[torch.Tensor]) -> torch.Tensor:
        if self.reference is not None:
            with self.reference.used() as model:
                return self.logps(model, batch, passes)
        model = self.accelerator.unwrap_model(self.model)
        with use_adapter(model, adapter_name=None):
            return self.logps(self.model, batch, passes)

    def _most(self, count: int) -> int:
        if self.accelerator.num_processes == 1:
            return count
        counts = torch.tensor([count], device=self.accelerator.device)
        return int(self.accelerator.gather(counts).max())

    def _gather_rows(self, rows: torch.Tensor) -> torch.Tensor:
        if self.accelerator.num_processes == 1:
            return rows
        if rows.dim() > 1:
            rows = self.accelerator.pad_across_processes(rows, dim=1)
        gathered: torch.Tensor = self.accelerator.gather(rows)
        return gathered

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        del generation_batch
        return self._micro

    def _micro_batches(self, inputs: Any) -> Iterator[tuple[Batch, bool]]:
        """Those of the next mini-batch, and whether each is the last; collects a rollout first."""
        if self._parts is not None:
            last = False
            while not last:
                micro, last = self._parts.following()
                yield micro, last
            return
        micro_batches: Any = super()._prepare_inputs(inputs)
        if self._fresh:
            self._fresh = False
            packed: Any = [
                [packing.cut(rows, rows_N) for rows_N in self.packing.passes(rows)]
                for rows in map(self._counted, self._cut(self._buffered_inputs))
            ]
            self._buffered_inputs = packed
            micro_batches = packed[self._step % len(packed)]
        for number, micro in enumerate(micro_batches, start=1):
            yield micro, number == len(micro_batches)

    def _counted(self, mini_batch: Batch) -> Batch:
        held = objective.window(mini_batch)
        everyone = self.accelerator.reduce(torch.stack(list(held.values()))).unbind()
        return mini_batch | dict(zip(held, everyone, strict=True))

    def conclude(self, whole: Collected, seen: Batch, *, judged: int) -> None:
        """Records a step whose rollouts came part by part.

        `seen` has `advantages`, `loss_mask` and `rewards` of all rows; `judged` counts judged ones.
        """
        self.collected, self.judged = whole, judged
        measured(self.hooks, whole)
        self._remember(seen)
        self._observe_advantages(seen)
        self._observe_shaped(seen)

    def _cut(self, shuffled: Any) -> list[Batch]:
        batch: Batch = {name: torch.cat([part[name] for part in shuffled]) for name in shuffled[0]}
        rows = batch["row"].argsort()
        batch = {name: values[rows] for name, values in batch.items()}
        mini_batches = self.config.optim.mini_batches
        order = minibatches.order(
            len(rows),
            mini_batches,
            process=self.accelerator.process_index,
            processes=self.accelerator.num_processes,
            seed=self.config.run.seed,
            step=self.state.global_step,
        )
        return [packing.cut(batch, part) for part in rows.new_tensor(order).chunk(mini_batches)]

    def _observe_shaped(self, batch: Batch) -> None:
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

    def create_optimizer(self, model: Any = None) -> Any:
        """Of the weights as they are sharded."""
        reshard(self.model)
        return super().create_optimizer(model)

    # -- the update -------------------------------------------------------------------------------

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        trunk = self.critic if isinstance(self.critic, TrunkCritic) else None
        with trunk.watch() if trunk else nullcontext():
            logps_BT, entropies_BT, aux_loss = self._of_tokens(
                model,
                inputs,
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
        processes = self.accelerator.num_processes
        loss = outcome.loss * processes
        if aux_loss is not None:
            share = len(inputs["rewards"]) / inputs["window_samples"]
            loss = loss + self.router_aux_loss_coef * aux_loss * share * processes
        if trunk:
            value_loss, sums = trunk.loss_from_last_forward(
                inputs,
                inputs["returns"],
                inputs["values"],
                inputs["value_mask"],
                tokens=inputs["window_value_tokens"],
            )
            loss = loss + value_loss
            self._observe_critic(sums)
        if not bool(loss.isfinite()):
            raise TrainingStoppedError(self._on_broken(inputs, float(loss.detach())))
        outcome.sums["padding_ratio"] = computed = packing.computed(inputs)
        self.timing.count(computed[1])
        self._observe(outcome, logps_BT.detach(), inputs)
        if self._update < self.config.optim.mini_batches:
            self.on_entropies(inputs, entropies_BT)
        return loss

    def training_step(
        self, model: Any, inputs: Any, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """A mini-batch: the policy's micro-batches, each before the critic's."""
        model.train()
        step, total = self._step, torch.zeros((), device=self.accelerator.device)
        for micro, last in self._micro_batches(inputs):
            self._micro = micro
            # as transformers' loop has it for micro-batches of its own
            self.accelerator.gradient_state._set_sync_gradients(last)  # noqa: SLF001
            sharded = self.accelerator.distributed_type == DistributedType.DEEPSPEED
            alone = nullcontext() if last or sharded else self.accelerator.no_sync(model)
            with self.timing.of("update_s"), alone:
                loss = super().training_step(model, inputs, num_items_in_batch)
            if self._parts is not None:
                loss = self._parts.settled(loss, micro, last=last)
            total = total + loss
            if isinstance(self.critic, Critic):
                with self.timing.of("update_s"):
                    sums = self.critic.backward(
                        micro,
                        micro["returns"],
                        micro["values"],
                        micro["value_mask"],
                        tokens=micro["window_value_tokens"],
                        sync=last,
                    )
                self._observe_critic(sums)
        self._step = step + 1
        if self.critic is not None:
            moved = self.critic.step()
            self._metrics["train"]["value_grad_norm"].append(moved["grad_norm"])
            self._metrics["train"]["value_learning_rate"].append(moved["lr"])
        self._publish()
        return total

    @property
    def moves(self) -> bool:
        """Whether the mini-batch at hand has anything in its loss."""
        return bool(self._micro) and bool(self._micro["window_tokens"] > 0)

    # -- what is seen -----------------------------------------------------------------------------

    def _observe(self, outcome: objective.Outcome, logps_BT: torch.Tensor, batch: Batch) -> None:
        self._add_sums(outcome.sums)
        for name, value in outcome.peaks.items():
            self._peaks[name] = torch.maximum(self._peaks.get(name, value), value)
        if not self._update:
            fresh_BT = batch["drawn"] & ~batch["stale"].unsqueeze(1)
            for hook in self.hooks:
                fresh_BT = hook.sampled(fresh_BT)
            self._drift = self._drift + drift(logps_BT, batch["sampler_logps"], fresh_BT)

    @property
    def _update(self) -> int:
        return int(self.state.global_step) % self.config.updates_per_rollout

    def _add_sums(self, sums: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> None:
        for name, (total, weight) in sums.items():
            kept = self._sums[name]
            kept[0] = kept[0] + total
            kept[1] = kept[1] + weight

    def _observe_returns(self, batch: Batch, lam_B: torch.Tensor) -> None:
        metrics = self._metrics["train"]
        seen = measure(batch["values"], batch["returns"], batch["value_mask"], self.accelerator)
        metrics["explained_variance"].append(seen.explained_variance)
        if self.state.global_step == 0 and self.collected.slot_rows is None:
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
        whole = self.collected.slot_rows is None
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
        if self._update:
            return
        everyone = self.ranks.gather(np.array([astuple(self._drift)], np.float64)).tolist()
        total = sum((DriftReport(*sums) for sums in everyone), DriftReport())
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
        """The critic, where the rollouts are, and what methods have learned."""
        if self.critic is not None:
            self.critic.save(folder / CRITIC)
        held = {"source": self.source.state_dict(), "methods": states_of(self.hooks)}
        if self.accelerator.is_main_process:
            torch.save(held | {"judged": self.judged}, folder / ROLLOUT_STATE)

    def save_between_steps(self) -> None:
        """Saves the completed steps after an undone one."""
        folder = Path(str(self.args.output_dir)) / checkpoints.name_of(self.state.global_step)
        if self.state.global_step and not folder.exists():
            self._save_checkpoint(self.model, None)
            self.control = self.callback_handler.on_save(self.args, self.state, self.control)

    def _load_optimizer_and_scheduler(self, checkpoint: Any) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        state = torch.load(Path(checkpoint) / ROLLOUT_STATE, weights_only=True)
        self.source.load_state_dict(state["source"])
        self.judged = state["judged"]
        load_states(self.hooks, state.get("methods", {}))
        if self.critic is not None:
            self.critic.load(Path(checkpoint) / CRITIC)
