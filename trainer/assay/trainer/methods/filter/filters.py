"""Judged responses that do not train: PROF, ReST-RL's spread of rewards, SimpleTIR's void turns.

PROF (arXiv 2509.03403) and the spread leave a response out of the loss and out of every mean of
rewards. A trajectory with a void turn leaves the loss, and its reward stays in its group's mean, as
in SimpleTIR's code. Groups keep their size in the batch, so that processes compute equally much.

Differences:

1. PROF with `correct`: as many go as with `both`; of the incorrect the last drawn. The paper's
   choice was not at hand. [derivation]
2. With PROF, a response without a judged step is left out.
3. ReST-RL's deviation is the population's, as in numpy.
4. SimpleTIR's turns (arXiv 2509.02479) lie between tool calls, as those of an episode do, whose
   format tells calls and answers. Elsewhere they are a dialogue's attempts (method.turns), or the
   one response; verifications need neither code nor answer. There the patterns of code and answer
   are settings; the defaults are its code's, except that fences may name any language.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from assay.clients import Judgement
from assay.trainer.algos.selection import prof_filter
from assay.trainer.core.batch import Scored
from assay.trainer.core.hooks import Hooks
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.filter.settings import FilterConfig
from assay.trainer.rollouts.types import Rollout


class Filtering(Hooks):
    """Which judged responses train."""

    def scored(self, groups: list[list[Scored]]) -> list[list[Scored]]:
        """See Hooks."""
        chosen = self.config.method.filter
        left = iter(without_void(filtered(groups, chosen), chosen))
        return [list(islice(left, len(group))) for group in groups]


def filtered(groups: Sequence[Sequence[Scored]], config: FilterConfig) -> list[Scored]:
    """The rollouts of groups; left-out ones have no reward and are outside of the loss.

    Raises:
        TrainingStoppedError: PROF is on, and no judgement holds a step.
    """
    if config.prof != "none":
        _check_steps(groups)
    found: list[Scored] = []
    for group in groups:
        left = {n for n, item in enumerate(group) if item.reward is not None}
        if config.prof != "none":
            left &= _prof(group, config)
        rewards = [group[n].reward or 0.0 for n in sorted(left)]
        if config.min_group_std and (
            len(rewards) < 2 or statistics.pstdev(rewards) < config.min_group_std
        ):
            left = set()
        found += [item if n in left else left_out(item) for n, item in enumerate(group)]
    return found


def is_void(text: str, config: FilterConfig, extracted: str | None = None) -> bool:
    """SimpleTIR's void turn: neither a block of code nor an answer. Pure.

    `extracted` is the verifier's answer; None for none.
    """
    if config.void == "verifier":
        answered = bool(extracted)
    else:
        answered = re.search(config.void_answer, text) is not None
    return not answered and re.search(config.void_code, text) is None


def without_void(items: Sequence[Scored], config: FilterConfig) -> list[Scored]:
    """The rollouts; those with a void turn are outside of the loss."""
    if config.void == "none":
        return list(items)
    return [replace(item, in_loss=False) if _has_void(item, config) else item for item in items]


def _has_void(item: Scored, config: FilterConfig) -> bool:
    rollout = item.rollout
    if not isinstance(rollout, Rollout):
        return False
    if config.void == "turn":
        return rollout.acted is not None and any(turn.void for turn in rollout.acted.turns)
    turns = [(turn.text, turn.result) for turn in rollout.turns if turn.result is not None]
    return any(
        is_void(text, config, judged.judgement.extracted_answer if judged.judgement else None)
        for text, judged in turns or [(rollout.response.text, rollout.result)]
    )


def left_out(item: Scored) -> Scored:
    """A rollout that does not train; a fault stays one."""
    return replace(item, reward=None, in_loss=False, token_rewards=None, ends=None)


def _prof(group: Sequence[Scored], config: FilterConfig) -> set[int]:
    """Places that PROF keeps; all of a group that is all right or all wrong."""
    ranked: list[tuple[int, bool, float]] = []
    for place, item in enumerate(group):
        judgement = _judgement(item)
        if judgement is not None and judgement.spans and item.reward is not None:
            mean = statistics.fmean(span.reward for span in judgement.spans)
            ranked.append((place, judgement.verdict == "correct", mean))
    keep = min(len(ranked), config.prof_keep or len(group) // 2)
    right = [yes for _, yes, _ in ranked]
    if keep == len(ranked) or all(right) or not any(right):
        return {place for place, _, _ in ranked}
    means = [mean for _, _, mean in ranked]
    if config.prof == "correct":  # the incorrect rank by their drawing
        means = [mean if yes else float(n) for n, (_, yes, mean) in enumerate(ranked)]
    kept, _ = prof_filter(right, means, keep)
    return {ranked[n][0] for n in kept}


def _judgement(item: Scored) -> Judgement | None:
    rollout = item.rollout
    return rollout.result.judgement if isinstance(rollout, Rollout) else None


def _check_steps(groups: Sequence[Sequence[Scored]]) -> None:
    judgements = [_judgement(item) for group in groups for item in group]
    told = [judgement for judgement in judgements if judgement is not None]
    if told and not any(judgement.spans for judgement in told):
        raise TrainingStoppedError(
            "method.filter.prof ranks responses by their judged steps, and the verifier "
            f"{told[0].verifier!r} judges none; use one that does, such as prm, or set "
            'method.filter.prof = "none"'
        )
