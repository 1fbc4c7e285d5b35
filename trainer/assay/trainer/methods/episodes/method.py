"""The hooks of episodes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from assay.environments import Ending, Environment, EpisodeLimits, environment_of
from assay.environments.cache import ToolCache
from assay.environments.formats import format_of
from assay.environments.registry import settings_of
from assay.environments.selftest import insist, prove
from assay.trainer.algos.episodes import agent_gae
from assay.trainer.core.batch import Batch, Scored, filled
from assay.trainer.core.build import encoder
from assay.trainer.core.evaluation import FIRST_DRAW, Evaluation
from assay.trainer.core.rewards import EVALUATION, TRAINING, Judge
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.engines.types import Draw, Request
from assay.trainer.methods.episodes.columns import tokens_of_scored
from assay.trainer.methods.episodes.evaluation import evaluate_episodes
from assay.trainer.methods.episodes.loop import EpisodeLoop
from assay.trainer.methods.episodes.measures import episode_metrics
from assay.trainer.methods.episodes.rendering import Rendering
from assay.trainer.methods.episodes.services import Outage, RunServices
from assay.trainer.methods.episodes.talk import Episodes, EpisodeSetup
from assay.trainer.recipes.hooks import RunHooks, RunSession
from assay.trainer.rollouts.exchange import Talk
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.settings.config import Config

_LIMITS = (Ending.TURN_LIMIT, Ending.TOKEN_LIMIT)


@dataclass(slots=True)
class _OpenRun:
    """The environment of a run, opened once, and the loop of its episodes."""

    kind: type[Environment]
    settings: Any
    shared: Any
    loop: EpisodeLoop
    rendering: Rendering
    outage: Outage
    cache: ToolCache | None
    stack: ExitStack


class Acting(RunHooks):
    """The policy acts in an environment (ReTool, arXiv 2504.11536; SimpleTIR, 2509.02479)."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._opened: _OpenRun | None = None
        self._rendered: Rendering | None = None

    def needs_single_judgements(self) -> str:
        """See Hooks."""
        return (
            "method.episodes has an environment ask for each episode by itself; set "
            'method.episodes.environment = ""'
        )

    def talk(self, policy: LoadedPolicy, judge: Judge) -> Talk:
        """See Hooks."""
        return self._talk(policy, judge, TRAINING)

    def stops(self, policy: LoadedPolicy) -> tuple[str, ...]:
        """See Hooks."""
        return self._rendering(policy).stops

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """See Hooks: an episode that a limit ended may be left out."""
        if self.config.method.episodes.limits == "train":
            return groups
        return [[_left_out(item) for item in group] for group in groups]

    def measured(self, collected: Collected) -> Mapping[str, float]:
        """See Hooks."""
        cache = None if self._opened is None else self._opened.cache
        return {**episode_metrics(collected.judged), **({} if cache is None else cache.metrics())}

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks; of shape (B, T).

        `own`, `loss_mask` and `value_mask` of the policy's tokens; `turn`, from 1 in the order of
        time, and `role`, both 0 where a token is not the policy's; `turn_rewards`, on the last
        token of each turn, which `rewards` (B,) has too; `context`, from 0, where an episode has
        several conversations.
        """
        del collected
        found = [tokens_of_scored(item) for item in scored]
        device = batch["rewards"].device

        def column(name: str, filler: float, kind: torch.dtype) -> torch.Tensor:
            return filled([getattr(one, name) for one in found], filler, kind).to(device)

        trained_BT = column("trained", False, torch.bool)
        judged_B = torch.tensor([item.trains and not item.unfinished for item in scored])
        on_turns_B = torch.tensor([one.on_turns for one in found], device=device)
        marked = {
            **batch,
            "rewards": batch["rewards"] + on_turns_B,  # a fault stays NaN
            "own": column("own", False, torch.bool),
            "turn": column("turns", 0, torch.long),
            "role": column("roles", 0, torch.long),
            "turn_rewards": column("rewards", 0.0, torch.float32),
            "loss_mask": batch["loss_mask"] & trained_BT,
            "value_mask": trained_BT & judged_B.to(device).unsqueeze(1),
        }
        if any(one.contexts[-1] for one in found):
            marked["context"] = column("contexts", 0, torch.long)
        return marked

    def earned(self, batch: Batch, rewards_BT: torch.Tensor) -> torch.Tensor:
        """See Hooks: on a turn's last token."""
        del rewards_BT
        return batch["turn_rewards"]

    def returns(self, batch: Batch) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
        """See Hooks: over turns in the order of time."""
        turn_BT = batch["turn"]
        return partial(agent_gae, turn_BT=turn_BT, agent_BT=(turn_BT > 0).long())

    def prepare(
        self, session: RunSession, trainer: PolicyTrainer, stream: Any, *, resumed: bool
    ) -> bool:
        """See RunHooks: the environment proves itself.

        Raises:
            ConfigError: a scripted episode ended otherwise than it must.
        """
        del trainer, stream, resumed
        opened = self._open(session.policy, session.judge)
        if session.world.main:
            request = Request(Draw(FIRST_DRAW - 1, Problem("proof", "", (), ""), ()), 0)
            services = RunServices(session.judge, opened.outage, request, EVALUATION)
            insist(opened.kind, prove(opened.kind, opened.settings, services, opened.shared))
        return True

    def evaluate(self, session: RunSession, trainer: PolicyTrainer, sampler: Sampler) -> Evaluation:
        """See RunHooks."""
        found = evaluate_episodes(
            session.problems.eval,
            sampler,
            lambda: session.judge.open_round(0, EVALUATION),
            encoder(session.policy),
            self._talk(session.policy, session.judge, EVALUATION),
            samples=session.config.eval.samples,
            ranks=AccelerateRanks(trainer.accelerator),
            on_progress=session.display.advance,
            on_rollouts=trainer.on_evaluated,
        )
        if self._opened is not None and self._opened.cache is not None:
            self._opened.cache.taken()  # of no step
        return found

    def close(self) -> None:
        """See Hooks."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.stack.close()

    def _rendering(self, policy: LoadedPolicy) -> Rendering:
        if self._rendered is None:
            tokenizer = copy.deepcopy(policy.tokenizer)  # one is not for two threads
            chosen = self.config.method.episodes
            self._rendered = Rendering(
                tokenizer, format_of(chosen.format, tokenizer), answer=chosen.answer
            )
        return self._rendered

    def _open(self, policy: LoadedPolicy, judge: Judge) -> _OpenRun:
        if self._opened is None:
            config = self.config.method.episodes
            kind = environment_of(config.environment)
            settings = settings_of(kind, config.settings)
            rendering = self._rendering(policy)
            with ExitStack() as stack:
                shared = stack.enter_context(kind.open(settings))
                loop = EpisodeLoop(config.concurrency)
                stack.callback(loop.close)
                cache = ToolCache() if config.cache else None
                outage = Outage(judge.patience)
                self._opened = _OpenRun(
                    kind, settings, shared, loop, rendering, outage, cache, stack.pop_all()
                )
        return self._opened

    def _talk(self, policy: LoadedPolicy, judge: Judge, phase: str) -> Episodes:
        opened, config = self._open(policy, judge), self.config.method.episodes
        tokenizer = policy.tokenizer
        setup = EpisodeSetup(
            opened.kind,
            opened.settings,
            opened.shared,
            EpisodeLimits(config.turns, config.seconds),
            opened.rendering,
            lambda request: RunServices(judge, opened.outage, request, phase),
            lambda ids: str(tokenizer.decode(ids, skip_special_tokens=True)),
            int(tokenizer.pad_token_id),
            tokens=config.tokens,
            context=_context(self.config, policy),
            cache=opened.cache,
        )
        return Episodes(opened.loop, setup)


def _left_out(item: Scored) -> Scored:
    rollout = item.rollout
    acted = rollout.acted if isinstance(rollout, Rollout) else None
    if acted is None or Ending(acted.ending) not in _LIMITS:
        return item
    return replace(item, in_loss=False)


def _context(config: Config, policy: LoadedPolicy) -> int:
    """Most tokens of a conversation: the model's, or its engine's where that has fewer."""
    model = int(getattr(policy.model.config, "max_position_embeddings", None) or 0)
    return min(filter(None, (model, config.rollout.vllm.max_model_length)), default=0)
