"""Dialogues of the policy with itself: attempt all, verify all, revise some.

A round of PAG (arXiv 2506.10406) is up to three calls of the generator, and every process makes
each of them, with as many requests as the others: where their revisions differ in number, those
with fewer ask for responses that nobody looks at. An attempt goes to the reward service the moment
it is complete, an item of its own, and is judged while verifications and revisions are written.

Each turn has random numbers of its own (rollouts.seeded), fixed by seed, draw, sample and turn: a
dialogue does not depend on which others are revised, and a resumed run repeats it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.clients import Result
from assay.trainer.engines.types import Generator, Request, Response
from assay.trainer.methods.turns.credit import row_result, turn_metrics
from assay.trainer.methods.turns.protocol import Protocol
from assay.trainer.rollouts.dynamic import Tally
from assay.trainer.rollouts.outages import refuse_given_up
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import deal
from assay.trainer.rollouts.types import Collected, Group, Ranks, Rollout, ScoringRound, Turn

# What one process tells the others of a dialogue; the rest they know.
_Told = tuple[Response, tuple[Turn, ...]]


class Dialogues:
    """Has requests answered turn by turn.

    Args:
        generator: the policy.
        protocol: what is said between its turns.
        decode: tokens to text, without special tokens.
        ranks: the processes.
        validation: of an evaluation, where a verdict that cannot be read asks for a revision.
        confidence: P(correct) of verifications, given what was asked and what was said; None asks
            nobody.
        clock: seconds.

    Attributes:
        generate_s: seconds of this process's generation.
        wait_s: seconds that it waited for judgements.
    """

    def __init__(
        self,
        generator: Generator,
        protocol: Protocol,
        decode: Callable[[list[int]], str],
        ranks: Ranks,
        *,
        validation: bool = False,
        confidence: Callable[[Sequence[Request], Sequence[Response]], list[float]] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._generator = generator
        self._protocol = protocol
        self._decode = decode
        self._ranks = ranks
        self._validation = validation
        self._confidence = confidence
        self._clock = clock
        self.generate_s = 0.0
        self.wait_s = 0.0

    def conduct(
        self, requests: Sequence[Request], scoring: ScoringRound, *, policy_step: int = 0
    ) -> list[Rollout]:
        """The dialogues, in order, with the results of their attempts.

        Every process must call it with equally many requests, at least one.

        Args:
            requests: first turns.
            scoring: a round that nothing was submitted to; it is ended.
            policy_step: optimizer steps that the policy has made.
        """
        said: list[list[Response]] = [[] for _ in requests]
        submitted: list[tuple[int, int]] = []
        everyone = range(len(requests))

        def speak(turn: int, places: Sequence[int]) -> None:
            asked = [self._next(requests[place], said[place], turn) for place in places]
            judged = not self._protocol.is_verification(turn)

            def on_finished(number: int, response: Response) -> None:
                if judged and number < len(places):
                    submitted.append((places[number], turn))
                    scoring.submit(requests[places[number]], response)

            fillers = [replace(requests[0], turn=turn)] * self._lacking(len(asked))
            for place, response in zip(
                places, self._answers([*asked, *fillers], on_finished), strict=False
            ):
                said[place].append(response)

        speak(0, everyone)
        speak(1, everyone)
        chances: list[float] = []
        if self._protocol.verifies:
            if self._confidence is not None:
                asked = [self._next(requests[place], said[place][:1], 1) for place in everyone]
                chances = self._confidence(asked, [said[place][1] for place in everyone])
            speak(2, [place for place in everyone if self._is_due(said[place][1])])
        before = self._clock()
        results = dict(zip(submitted, scoring.results(), strict=True))
        self.wait_s += self._clock() - before
        return [
            self._whole(
                request,
                place,
                said[place],
                results,
                policy_step,
                chance=chances[place] if chances else None,
            )
            for place, request in enumerate(requests)
        ]

    def _is_due(self, verification: Response) -> bool:
        verdict = self._protocol.verdict(verification.text)
        return self._protocol.asks_again(verdict, validation=self._validation)

    def _next(self, first: Request, said: Sequence[Response], turn: int) -> Request:
        """The request for a turn: all that was said before it is its prompt."""
        if not said:
            return first
        ids = [*first.draw.prompt_ids, *self._joined(said)[0]]
        ids += self._protocol.before(turn, said[-1].ids)
        return Request(replace(first.draw, prompt_ids=tuple(ids)), first.index, turn=turn)

    def _lacking(self, mine: int) -> int:
        """How many requests the process with the most has more than this one."""
        return max(self._ranks.gather([mine])) - mine

    def _answers(
        self, asked: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        if not asked:
            return []
        seen: list[int] = []

        def on_seen(number: int, response: Response) -> None:
            seen.append(number)
            on_finished(number, response)

        before = self._clock()
        responses = self._generator.generate(asked, on_seen)
        self.generate_s += self._clock() - before
        if sorted(seen) != list(range(len(asked))) or len(responses) != len(asked):
            raise RuntimeError(
                f"{type(self._generator).__name__} answered {len(responses)} and reported "
                f"{len(seen)} of {len(asked)} requests; each is due once"
            )
        return responses

    def _joined(self, said: Sequence[Response]) -> tuple[list[int], list[tuple[int, int]]]:
        """The tokens of turns and of what stands between, and where each turn begins and ends."""
        ids: list[int] = []
        places = []
        for turn, response in enumerate(said):
            if turn:
                ids += self._protocol.before(turn, said[turn - 1].ids)
            places.append((len(ids), len(ids) + len(response.ids)))
            ids += response.ids
        return ids, places

    def _whole(
        self,
        request: Request,
        place: int,
        said: Sequence[Response],
        results: Mapping[tuple[int, int], Result],
        policy_step: int,
        *,
        chance: float | None,
    ) -> Rollout:
        """One dialogue as one response."""
        ids, places = self._joined(said)
        turns = []
        for turn, (response, (start, end)) in enumerate(zip(said, places, strict=True)):
            one = Turn(start, end, response.text, response.truncated)
            if self._protocol.is_verification(turn):
                verdict = self._protocol.verdict(response.text)
                one = replace(one, verdict=verdict, correct_probability=chance)
            turns.append(replace(one, result=results.get((place, turn))))
        response = Response(
            ids=tuple(ids),
            text=self._decode(ids),
            logprobs=_logprobs(said, places, len(ids)),
            truncated=any(turn.truncated for turn in turns),
        )
        return Rollout(request, response, row_result(turns), policy_step, tuple(turns))


def _logprobs(
    said: Sequence[Response], places: Sequence[tuple[int, int]], length: int
) -> tuple[float, ...] | None:
    """Of all tokens, NaN for those that the policy did not draw."""
    logprobs = [math.nan] * length
    for response, (start, end) in zip(said, places, strict=True):
        if response.logprobs is None:
            return None
        logprobs[start:end] = response.logprobs
    return tuple(logprobs)


class DialogueCollector:
    """Collects the groups of one step after another, each sample a dialogue: a Source.

    Args:
        stream: of prompts; its cursor is moved by this collector only, and saved with it.
        dialogues: has them held.
        open_round: begins the judging of one round.
        prompts_per_step: over all processes.
        group_size: samples of each.
        ranks: the processes; their count divides `prompts_per_step`.
    """

    def __init__(
        self,
        stream: PromptStream,
        dialogues: Dialogues,
        open_round: Callable[[], ScoringRound],
        *,
        prompts_per_step: int,
        group_size: int,
        ranks: Ranks,
    ) -> None:
        self._stream = stream
        self._dialogues = dialogues
        self._open_round = open_round
        self._prompts_per_step = prompts_per_step
        self._group_size = group_size
        self._ranks = ranks

    def collect(self, policy_step: int) -> Collected:
        """The groups of the next step. If it raises, the stream is where it was.

        Args:
            policy_step: optimizer steps that the policy has made.

        Raises:
            ConfigError: a prompt does not fit the policy's context.
            OutageError: the reward services were away for too long.
        """
        start = self._stream.cursor
        try:
            return self._collect(policy_step)
        except BaseException:
            self._stream.give_back(self._stream.cursor - start)
            raise

    def _collect(self, policy_step: int) -> Collected:
        draws = self._stream.take(self._prompts_per_step)
        samples = range(self._group_size)
        generated, waited = self._dialogues.generate_s, self._dialogues.wait_s
        mine = self._dialogues.conduct(
            [Request(draw, index) for draw in deal(draws, self._ranks) for index in samples],
            self._open_round(),
            policy_step=policy_step,
        )
        told: list[_Told] = [(rollout.response, rollout.turns) for rollout in mine]
        everyone = iter(self._ranks.gather(told))
        groups: list[Group] = [
            tuple(
                Rollout(Request(draw, index), response, row_result(turns), policy_step, turns)
                for index, (response, turns) in zip(samples, everyone, strict=False)
            )
            for draw in draws
        ]
        refuse_given_up(rollout.result for group in groups for rollout in group)
        tally = Tally()
        tally.add(groups)
        rollouts = [rollout for group in groups for rollout in group]
        return Collected(
            groups=deal(groups, self._ranks),
            judged=rollouts,
            metrics={
                **tally.metrics(self._group_size),
                **turn_metrics(rollouts),
                **self._stream.learn(groups),
                "rounds": 1.0,
                "surplus": 0.0,
                "stale_groups": 0.0,
                "generated_per_used": 1.0,
            },
            generate_s=self._dialogues.generate_s - generated,
            wait_s=self._dialogues.wait_s - waited,
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, in plain containers."""
        return {"stream": self._stream.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where a collector with the same data was.

        Raises:
            ConfigError: the data is not the same.
        """
        self._stream.load_state_dict(state["stream"])
