"""The hooks of responses that begin with what their row holds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from assay.clients import Result
from assay.kit.errors import ConfigError
from assay.trainer.core.batch import Batch, Scored, with_own
from assay.trainer.core.hooks import Hooks
from assay.trainer.core.rewards import Judge
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.engines.types import Request, Response
from assay.trainer.rollouts.exchange import Single, Talk
from assay.trainer.rollouts.types import Collected, PolicyTurn, Remote, Rollout


class Starts(Hooks):
    """Responses begin with what their row holds (ReST-RL, arXiv 2508.19576)."""

    _talk: Started | None = None

    def talk(self, policy: LoadedPolicy, judge: Judge) -> Talk:
        """See Hooks."""
        del judge
        tokenizer = policy.tokenizer
        self._talk = Started(
            self.config.method.starts.column,
            lambda text: tokenizer(text, add_special_tokens=False)["input_ids"],
            self.config.rollout.max_new_tokens,
        )
        return self._talk

    def measured(self, collected: Collected) -> Mapping[str, float]:
        """See Hooks."""
        given = [
            (one.facts if isinstance(one, Remote) else self._talk.facts(one))[0]
            for one in collected.judged
            if self._talk is not None
        ]
        begun = [size for size in given if size]
        found = {"started": len(begun) / len(given)} if given else {}
        return found | ({"started_tokens": fmean(begun)} if begun else {})

    def mark(self, batch: Batch, scored: Sequence[Scored], collected: Collected) -> Batch:
        """See Hooks: what a row holds leaves `own`, `loss_mask` and what a critic learns."""
        del collected
        return with_own(batch, scored)


@dataclass(frozen=True, slots=True)
class Started(Single):
    """Samples that begin with a column of their problem's row.

    Attributes:
        encode: text to tokens, without special ones.
        most: tokens of a whole response.
    """

    column: str
    encode: Callable[[str], Sequence[int]]
    most: int

    def begin(self, first: Request) -> Request:
        """See Talk.

        Raises:
            ConfigError: what a row holds leaves nothing to write.
        """
        problem = first.draw.problem
        text = str((json.loads(problem.row) if problem.row else {}).get(self.column) or "")
        if not text:
            return first
        ids = tuple(self.encode(text))
        if len(ids) >= self.most:
            raise ConfigError(
                f"method.starts.column: {self.column!r} of problem {problem.id} has {len(ids)} "
                f"tokens, which leave nothing of rollout.max_new_tokens = {self.most}; raise it, "
                "or take the row out"
            )
        unknown = (math.nan,) * len(ids)
        return replace(first, begun=Response(ids, "", unknown, truncated=False, finished=False))

    def rollout(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        """See Talk: what the policy wrote is the one turn of a response that was begun."""
        made = Single.rollout(self, first, responses, results, policy_step)
        begun = self.begin(first).begun
        if begun is None:
            return made
        whole = made.response
        turn = PolicyTurn(
            len(begun.ids), len(whole.ids), whole.text, whole.truncated, result=made.result
        )
        return replace(made, turns=(turn,))

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        """How many tokens it began with."""
        return (float(rollout.turns[0].start) if rollout.turns else 0.0,)
