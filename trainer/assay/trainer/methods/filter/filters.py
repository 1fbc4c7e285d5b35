"""Judged responses that do not train: PROF, ReST-RL's spread of rewards, SimpleTIR's void turns.

What PROF (arXiv 2509.03403) and the spread leave out is as if it had not been drawn: no token of it
is in the loss, and its reward is in no mean. A trajectory with a void turn leaves the loss, and its
reward stays in the mean of its group, as in SimpleTIR's code. Groups stay as large in the batch, so
that every process computes equally much.

Differences:

1. PROF with `correct`: as many go as with `both`; the incorrect ones that go are the last drawn.
   Which they are in the paper was not at hand. [derivation]
2. A response without a judged step cannot be ranked, and is left out where PROF is on.
3. ReST-RL's deviation is the population's, as in numpy.
4. SimpleTIR's turns (arXiv 2509.02479) are those between calls of a tool. Here they are the
   attempts of a dialogue (method.turns), or the one response; a verification is asked for
   neither code nor answer. What is code and what is an answer can be set; the defaults are those
   of its code, but for fences of any language.
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
    """The rollouts of groups, those that do not train without reward and outside of the loss.

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
    """Whether a turn has neither a block of code nor an answer: SimpleTIR's void turn. Pure.

    Args:
        text: of the turn.
        config: what is code, and where an answer is looked for.
        extracted: the answer that the verifier found; None for none.
    """
    if config.void == "verifier":
        answered = bool(extracted)
    else:
        answered = re.search(config.void_answer, text) is not None
    return not answered and re.search(config.void_code, text) is None


def without_void(items: Sequence[Scored], config: FilterConfig) -> list[Scored]:
    """The rollouts, those with a void turn outside of the loss."""
    if config.void == "none":
        return list(items)
    return [replace(item, in_loss=False) if _has_void(item, config) else item for item in items]


def _has_void(item: Scored, config: FilterConfig) -> bool:
    rollout = item.rollout
    if not isinstance(rollout, Rollout):
        return False
    turns = [(turn.text, turn.result) for turn in rollout.turns if turn.result is not None]
    return any(
        is_void(text, config, judged.judgement.extracted_answer if judged.judgement else None)
        for text, judged in turns or [(rollout.response.text, rollout.result)]
    )


def left_out(item: Scored) -> Scored:
    """A rollout that does not train; a fault stays what it is."""
    return replace(item, reward=None, in_loss=False, token_rewards=None, ends=None)


def _prof(group: Sequence[Scored], config: FilterConfig) -> set[int]:
    """Places that PROF keeps; all of a group that is all right or all wrong, which says nothing."""
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
