"""Dialogues of the policy with itself: attempt, verification, revision.

Each dialogue continues when its own turn ends (PAG, arXiv 2506.10406). An attempt goes to the
reward service the moment it is complete, and is judged while verifications and revisions are
written.

Seed, draw, sample and turn fix each turn's random numbers (engines.seeded): a dialogue does not
depend on the others, and a resumed run repeats it. Pure.

With method.truncation a dialogue is drawn over several steps, each of which may end within a turn
or between two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from assay.clients import Result
from assay.trainer.engines.types import Request, Response
from assay.trainer.methods.turns.credit import dialogue_facts, row_result
from assay.trainer.methods.turns.protocol import Protocol
from assay.trainer.rollouts.exchange import Talk
from assay.trainer.rollouts.types import PolicyTurn, Rollout, Unfinished


class Dialogues(Talk):
    """What a dialogue is; a rollouts.exchange.Talk.

    Args:
        protocol: the text between the policy's turns.
        decode: tokens to text, without special tokens.
        validation: in an evaluation an unreadable verdict asks for a revision.
    """

    def __init__(
        self,
        protocol: Protocol,
        decode: Callable[[list[int]], str],
        *,
        validation: bool = False,
    ) -> None:
        self._protocol = protocol
        self._decode = decode
        self._validation = validation

    def judged(self, turn: int) -> bool:
        """See Talk: attempts are."""
        return not self._protocol.is_verification(turn)

    def following(self, first: Request, responses: Sequence[Response]) -> Request | None:
        """See Talk: a turn's prompt is everything before it."""
        turn = len(responses)
        if turn > len(self._protocol.between):
            return None
        if self._protocol.is_verification(turn - 1):
            verdict = self._protocol.verdict(responses[-1].text)
            if not self._protocol.asks_again(verdict, validation=self._validation):
                return None
        ids = [*first.draw.prompt_ids, *self._joined(responses)[0]]
        ids += self._protocol.before(turn, responses[-1].ids)
        return Request(replace(first.draw, prompt_ids=tuple(ids)), first.index, turn=turn)

    def rollout(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Rollout:
        """See Talk: one response, with the text between the turns."""
        response, turns = self._response(responses, results)
        response = replace(response, text=self._decode(list(response.ids)))
        return Rollout(first, response, row_result(turns), policy_step, turns)

    def unfinished(
        self,
        first: Request,
        responses: Sequence[Response],
        results: Mapping[int, Result],
        policy_step: int,
    ) -> Unfinished:
        """See Talk: where no turn is open, the next one is due."""
        response, turns = self._response(responses, results)
        return Unfinished(first, replace(response, finished=False), policy_step, turns)

    def facts(self, rollout: Rollout) -> tuple[float, ...]:
        """See Talk."""
        return dialogue_facts(rollout)

    def _response(
        self, responses: Sequence[Response], results: Mapping[int, Result]
    ) -> tuple[Response, tuple[PolicyTurn, ...]]:
        ids, places = self._joined(responses)
        turns = []
        for turn, (response, (start, end)) in enumerate(zip(responses, places, strict=True)):
            one = PolicyTurn(
                start,
                end,
                response.text,
                response.truncated,
                result=results.get(turn),
                finished=response.finished,
            )
            if self._protocol.is_verification(turn):
                one = replace(one, verdict=self._protocol.verdict(response.text))
            turns.append(one)
        logprobs = _logprobs(responses, places, len(ids))
        truncated = any(turn.truncated for turn in turns)
        return Response(tuple(ids), "", logprobs, truncated), tuple(turns)

    def _joined(self, responses: Sequence[Response]) -> tuple[list[int], list[tuple[int, int]]]:
        """All tokens of the dialogue, and where each turn begins and ends."""
        ids: list[int] = []
        places = []
        for turn, response in enumerate(responses):
            if turn:
                ids += self._protocol.before(turn, responses[turn - 1].ids)
            places.append((len(ids), len(ids) + len(response.ids)))
            ids += response.ids
        return ids, places


def _logprobs(
    responses: Sequence[Response], places: Sequence[tuple[int, int]], length: int
) -> tuple[float, ...] | None:
    """Of all tokens; NaN for those that the policy did not draw."""
    logprobs = [math.nan] * length
    for response, (start, end) in zip(responses, places, strict=True):
        if response.logprobs is None:
            return None
        logprobs[start:end] = response.logprobs
    return tuple(logprobs)
