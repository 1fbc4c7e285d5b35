"""Suites answered by a policy, each judged by a verifier of its own."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from assay.clients.services import ASKED_SERVICES
from assay.kit.errors import ConfigError
from assay.trainer.core.evaluation import FIRST_DRAW, Evaluation, evaluate
from assay.trainer.core.rewards import EVALUATION, Judge
from assay.trainer.data.problems import Problem, render
from assay.trainer.data.suites import SuiteItems
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.rollouts.types import Ranks, Rollout, ScoringRound
from assay.trainer.settings.config import Config
from assay.trainer.settings.registry import methods_on

_ITEMS, _SUITES = 2**20, 2**31


def first_draw(suite: str) -> int:
    """The number of a suite's first draw: its own, whatever other suites are evaluated."""
    return FIRST_DRAW + (1 + zlib.crc32(suite.encode()) % _SUITES) * _ITEMS


def services_of(config: Config, suites: Sequence[SuiteItems]) -> list[str]:
    """Services beside the reward server that judge suites, or that methods ask.

    Those that start without settings of their own.
    """
    verifiers = [items.suite.table.verifier for items in suites]
    verifiers += [name for method in methods_on(config) for name in method.asks(config)]
    return sorted({"sandbox"} & {ASKED_SERVICES.get(name) for name in verifiers})


def judges_of(config: Config, judge: Judge, items: SuiteItems) -> tuple[Judge, Judge | None]:
    """Who judges a suite, and who scores for best@k, if anyone.

    Raises:
        ConfigError: the service has no such verifier.
    """
    table, asked = items.suite.table, config.eval
    reward = replace(config.reward, timeout_s=asked.suite_timeout_s)
    own = judge.beside(
        replace(reward, verifier=table.verifier, parameters=dict(table.parameters)),
        of=f"suite {items.suite.name}, verifier",
    )
    if not asked.best_by or items.samples == 1:
        return own, None
    chooser = replace(reward, verifier=asked.best_by, parameters=dict(asked.best_parameters))
    return own, judge.beside(chooser, of="eval.best_by")


def evaluate_suite(
    config: Config,
    items: SuiteItems,
    judge: Judge,
    sampler: Sampler,
    encode: Callable[[Problem], Sequence[int]],
    *,
    ranks: Ranks,
    on_progress: Callable[[int], None] = lambda _done: None,
    on_rollouts: Callable[[Sequence[Rollout]], None] = lambda _mine: None,
) -> Evaluation:
    """A suite's items answered and judged; raises as `judges_of` and `evaluate`."""
    own, chooser = judges_of(config, judge, items)

    def open_scoring() -> ScoringRound:
        return (chooser or own).open_round(items.samples, EVALUATION)

    found = evaluate(
        items.problems,
        sampler,
        lambda: own.open_round(items.samples, EVALUATION),
        encode,
        samples=items.samples,
        first=first_draw(items.suite.name),
        retries=0 if own.judges_groups else config.eval.retries,
        open_scoring=open_scoring if chooser else None,
        ranks=ranks,
        on_progress=on_progress,
        on_rollouts=on_rollouts,
    )
    return replace(found, origin=items.origin)


def check_suites(
    config: Config, suites: Sequence[SuiteItems], judge: Judge, policy: LoadedPolicy
) -> None:
    """Checks that suites can be answered and judged.

    Raises:
        ConfigError: a verifier is not served, or a prompt leaves no room for a response.
    """
    context = getattr(policy.model.config, "max_position_embeddings", None) or 0
    most = config.eval.max_new_tokens or config.rollout.max_new_tokens
    for items in suites:
        judges_of(config, judge, items)
        for problem in items.problems if context else ():
            length = len(policy.tokenizer(render(problem, policy.tokenizer))["input_ids"])
            if length + most > context:
                raise ConfigError(
                    f"the prompt of {problem.id} has {length} tokens, and {config.model.name!r} a "
                    f"context of {context}: no room for {most} more; lower eval.max_new_tokens, or "
                    "leave the suite out"
                )
