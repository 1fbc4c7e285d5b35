"""Responses that go on behind their end: VL-Rethinker's forced rethinking (arXiv 2504.08837).

    prompt  attempt  <trigger>  another look

1. The token that ended the attempt goes. The trigger's tokens are the tokenizer's, by themselves.
2. The whole text is judged, and the attempt by itself before.
3. The authors choose the last trigger for wrong attempts and the one before for right ones, each
   for a quarter; here chance alone chooses. They cut half of the attempts back to an earlier
   paragraph first, and keep two of a prompt; here none is cut, and all are kept.
4. Which go on depends on the seed, the draw and the sample alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.clients import Result
from assay.trainer.engines.types import Request, Response
from assay.trainer.methods.rethinking.settings import RethinkingConfig
from assay.trainer.rollouts.dynamic import CORRECT
from assay.trainer.rollouts.exchange import Single
from assay.trainer.rollouts.types import PolicyTurn, Rollout


@dataclass(frozen=True, slots=True)
class Rethinking(Single):
    """Samples of which some go on.

    Attributes:
        triggers: the tokens of each.
        decode: tokens to text, without special ones.
        ends: tokens that end a response.
        most: tokens of a whole response.
    """

    config: RethinkingConfig
    triggers: Sequence[tuple[int, ...]]
    decode: Callable[[list[int]], str]
    ends: Collection[int]
    most: int
    seed: int

    def begun(self, first: Request, attempt: Response) -> Response | None:
        """What goes on: the attempt and a trigger; None where the sample ends as it is."""
        chance = random.Random(f"{self.seed}-{first.draw.number}-{first.index}-rethinking")  # noqa: S311  # no secret
        if chance.random() >= self.config.share or attempt.truncated:
            return None
        trigger = chance.choice(self.triggers)
        own = len(attempt.ids) - (attempt.ids[-1] in self.ends)
        if not own or own + len(trigger) + self.config.room > self.most:
            return None
        known = attempt.logprobs
        return Response(
            ids=(*attempt.ids[:own], *trigger),
            text="",
            logprobs=None if known is None else (*known[:own], *(math.nan,) * len(trigger)),
            truncated=False,
            finished=False,
        )

    def following(self, first: Request, responses: Sequence[Response]) -> Request | None:
        """See Talk."""
        if len(responses) > 1:
            return None
        begun = self.begun(first, responses[0])
        return None if begun is None else replace(first, begun=begun, turn=1)

    def rollout(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        """See Talk: one response; its turns, where it went on, leave the trigger between them."""
        attempt = responses[0]
        if len(responses) == 1:
            return Rollout(first, attempt, results[0], policy_step)
        if self.config.keep == "correct" and not is_correct(results[1]):
            return Rollout(first, attempt, results[0], policy_step)
        whole, begun = responses[1], self.begun(first, attempt)
        start = len(begun.ids) if begun is not None else 0
        end = len(attempt.ids) - (attempt.ids[-1] in self.ends)
        turns = (
            PolicyTurn(0, end, attempt.text, truncated=False, result=results[0]),
            PolicyTurn(
                start,
                len(whole.ids),
                self.decode(list(whole.ids[start:])),
                whole.truncated,
                result=results[1],
            ),
        )
        return Rollout(first, whole, results[1], policy_step, turns)

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        """Whether a sample went on; then whether it is kept, was correct before, and is after.

        Where it is not kept, what it was after is 0.
        """
        if rollout.turns:
            before = rollout.turns[0].result
            right = before is not None and is_correct(before)
            return 1.0, 1.0, float(right), float(is_correct(rollout.result))
        went_on = self.begun(rollout.request, rollout.response) is not None
        return float(went_on), 0.0, float(is_correct(rollout.result)), 0.0


def is_correct(result: Result) -> bool:
    """Whether it was judged, and as correct."""
    return result.judgement is not None and result.judgement.verdict == CORRECT
