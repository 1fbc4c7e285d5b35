"""Where the rollouts of both roles come from (RL Tango, arXiv 2505.15034).

    Solutions       the generator's: the current verifier verifies each solution once; its verdicts
                    on steps become the judgement's spans
    Verifications   the verifier's: the current generator solves a problem, the services judge it,
                    and the verifier verifies the solution `group_size` times. It may draw more
                    than it verifies, for classes in balance (measures.balanced)

A solution without a judgement faults its whole group of verifications, which leaves the loss. A
solution too long for the verifier's context has no step rewards, and is a fault, CONTEXT_TOO_LONG,
as the verifier's. The part that fits is still verified and the answer ignored, so that every step
has equally many rows.

Draws of both roles, and verifications, have random numbers of their own (rollouts.seeded).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.clients import Component, Fault, Judgement, Result, Span
from assay.kit.reasons import Reason
from assay.trainer.core.batch import Scored
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.types import Draw, Generator, Request, Response
from assay.trainer.methods.cotraining.measures import (
    RIGHT,
    WRONG,
    ClassWeights,
    Verified,
    balanced,
    reward_of,
    verifier_metrics,
)
from assay.trainer.methods.cotraining.protocol import read, steps_of
from assay.trainer.methods.cotraining.settings import CotrainingConfig
from assay.trainer.rollouts.dynamic import Tally
from assay.trainer.rollouts.exchange import held
from assay.trainer.rollouts.outages import refuse_given_up
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.types import (
    Collected,
    Group,
    Rollout,
    ScoringRound,
    Source,
    Then,
    nothing_more,
)

_CORRECT = "correct"
_VERIFY, _SOLVE, _LEARN = 1, 2, 3
"""`turn` of a request: verify for the generator, solve for the verifier, verify for it."""
NAME = "truth-of-the-verdict"
"""The name of verifications' judge, for records."""


@dataclass(frozen=True, slots=True)
class Question:
    """A solution in the form that the verifier gets.

    Attributes:
        steps: where each begins and ends in the solution's text.
        ids: the prompt's tokens, as many as fit.
        fits: whether these are all.
    """

    steps: tuple[tuple[int, int], ...]
    ids: tuple[int, ...]
    fits: bool


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution for the verifier to learn from.

    Attributes:
        draw: of its verifications.
        truth: whether it is right; None where nobody judged it.
        fault: why its verifications earn nothing, where they do not.
    """

    draw: Draw
    question: Question
    truth: bool | None
    fault: Fault | None


class Asker:
    """Makes prompts for the verifier.

    Args:
        ask: question and steps to tokens.
        separator: ends a step.
        room: most tokens of a prompt; 0 for no limit.
    """

    def __init__(
        self, ask: Callable[[str, Sequence[str]], tuple[int, ...]], *, separator: str, room: int
    ) -> None:
        self._ask = ask
        self._separator = separator
        self._room = room

    def question(self, problem: str, solution: str) -> Question:
        """A solution's question."""
        steps = steps_of(solution, self._separator)
        ids = self._ask(problem, [solution[start:end] for start, end in steps])
        fits = not self._room or len(ids) <= self._room
        return Question(steps, ids if fits else ids[: self._room], fits)


class Solutions:
    """The generator's rollouts with the verifier's verdicts on their steps: a Source.

    Args:
        inner: gives judged rollouts.
        verifier: the sampler of verifications, with current weights.
    """

    def __init__(
        self,
        inner: Source,
        verifier: Generator,
        asker: Asker,
        config: CotrainingConfig,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._inner = inner
        self._verifier = verifier
        self._asker = asker
        self._config = config
        self._clock = clock

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """See Source."""

        def verify(collected: Collected) -> None:
            self._verify(collected)
            then(collected)

        return self._inner.collect(policy_step, verify)

    def _verify(self, collected: Collected) -> None:
        before = self._clock()
        found = self._verified(collected.held)
        collected.metrics |= verifier_metrics([verified for verified, _ in found.values()])
        collected.metrics |= _step_metrics(collected.held, found)
        collected.judged = [_with_steps(rollout, found) for rollout in collected.held]
        collected.groups = [
            tuple(_with_steps(rollout, found) for rollout in group) for group in collected.groups
        ]
        collected.metrics["verify_s"] = self._clock() - before

    def _verified(self, rollouts: Sequence[Rollout]) -> _Found:
        """Verifications of the judged solutions that fit, by place."""
        asked: list[tuple[Rollout, Question]] = []
        for rollout in rollouts:
            if rollout.result.judgement is None:
                continue
            problem = rollout.request.draw.problem
            question = self._asker.question(problem.question, rollout.response.text)
            if question.fits:
                asked.append((rollout, question))
        if not asked:
            return {}
        requests = [
            replace(
                rollout.request,
                draw=replace(rollout.request.draw, prompt_ids=question.ids),
                turn=_VERIFY,
            )
            for rollout, question in asked
        ]
        responses = self._verifier.generate(requests, _ignored)
        return {
            _place(rollout): (
                Verified(
                    _is_right(rollout.result) is True,
                    read(response.text, len(question.steps), self._config.parsing),
                ),
                question.steps,
            )
            for (rollout, question), response in zip(asked, responses, strict=True)
        }

    def state_dict(self) -> dict[str, Any]:
        """See Source."""
        return self._inner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See Source."""
        self._inner.load_state_dict(state)


_Found = Mapping[tuple[int, int], tuple[Verified, tuple[tuple[int, int], ...]]]


def _place(rollout: Rollout) -> tuple[int, int]:
    return rollout.request.draw.number, rollout.request.index


def _with_steps(rollout: Rollout, found: _Found) -> Rollout:
    """With a span of 1 or -1 for each step, where every step has a verdict."""
    judgement = rollout.result.judgement
    if judgement is None:
        return rollout
    verified, steps = found.get(_place(rollout), (None, ()))
    said = None if verified is None else verified.verification.steps
    spans = tuple(
        Span(start, end, 1.0 if right else -1.0, f"step {number}")
        for number, (right, (start, end)) in enumerate(
            zip(said or (), steps if said else (), strict=True), start=1
        )
    )
    result = replace(rollout.result, outcome=replace(judgement, spans=spans))
    return replace(rollout, result=result)


def _step_metrics(rollouts: Sequence[Rollout], found: _Found) -> dict[str, float]:
    judged = [rollout for rollout in rollouts if rollout.result.judgement is not None]
    if not judged:
        return {}
    named = {"verifier_reach": len(found) / len(judged)}
    if found:
        named["solution_steps"] = sum(len(steps) for _, steps in found.values()) / len(found)
    verdicts = [
        right for verified, _ in found.values() for right in verified.verification.steps or ()
    ]
    if verdicts:
        named["steps_correct"] = sum(verdicts) / len(verdicts)
    return named


class Verifications:
    """The verifier's rollouts: a Source.

    Args:
        stream: of problems, encoded for the generator; only this source moves its cursor.
        generator: the sampler of solutions, with current weights.
        open_round: begins the judging of solutions.
        verifier: the sampler of verifications.

    Attributes:
        classes: the moving counts of right and wrong solutions.
    """

    def __init__(
        self,
        stream: PromptStream,
        generator: Sampler,
        open_round: Callable[[], ScoringRound],
        verifier: Generator,
        *,
        asker: Asker,
        config: CotrainingConfig,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stream = stream
        self._generator = generator
        self._open_round = open_round
        self._verifier = verifier
        self._asker = asker
        self._config = config
        self._clock = clock
        self.classes = ClassWeights(config.class_decay, enabled=config.class_weights)

    def collect(self, policy_step: int, then: Then = nothing_more) -> Collected:
        """See Source."""
        start, counts = self._stream.cursor, self.classes.state_dict()
        try:
            collected = self._collect(policy_step)
            then(collected)
            return collected
        except BaseException:
            self._stream.give_back(self._stream.cursor - start)
            self.classes.load_state_dict(counts)
            raise

    def _collect(self, policy_step: int) -> Collected:
        config = self._config
        before = self._clock()
        solutions = self._solved(
            self._stream.take(config.prompts_per_step * config.draws_per_solution)
        )
        solved = self._clock()
        if config.draws_per_solution > 1:
            known = [None if one.fault else one.truth for one in solutions]
            solutions = [solutions[n] for n in balanced(known, config.prompts_per_step)]
        self.classes.see(one.truth for one in solutions if one.truth is not None)
        requests = [
            Request(one.draw, index, turn=_LEARN)
            for one in solutions
            for index in range(config.group_size)
        ]
        responses = iter(self._verifier.generate(requests, _ignored))
        groups: list[Group] = []
        verified: list[Verified] = []
        for one in solutions:
            group = []
            for index in range(config.group_size):
                response = next(responses)
                outcome: Judgement | Fault
                if one.fault is not None:
                    outcome = one.fault
                else:
                    said = read(response.text, len(one.question.steps), config.parsing)
                    verified.append(Verified(one.truth is True, said))
                    outcome = self._judged(verified[-1])
                request = Request(one.draw, index, turn=_LEARN)
                group.append(Rollout(request, response, Result("", outcome), policy_step))
            groups.append(tuple(group))
        return self._finished(groups, verified, solved - before, self._clock() - solved)

    def _solved(self, draws: Sequence[Draw]) -> list[Solved]:
        requests = [Request(draw, 0, turn=_SOLVE) for draw in draws]
        rollouts = held(self._generator, requests, self._open_round())
        refuse_given_up(one.result for one in rollouts)
        solved = []
        for draw, one in zip(draws, rollouts, strict=True):
            question = self._asker.question(draw.problem.question, one.response.text)
            truth = _is_right(one.result)
            about = _about(draw, one.response, question, truth)
            solved.append(Solved(about, question, truth, _fault(one.result, question)))
        return solved

    def _judged(self, verified: Verified) -> Judgement:
        gamma = self._config.format_weight
        final = verified.verification.final
        verdict = "correct" if verified.true else "unparsed" if final == "unparsed" else "incorrect"
        return Judgement(
            reward_of(verified, gamma),
            verdict,
            (
                Component("truth", float(verified.true), 1.0),
                Component("form", verified.verification.form, gamma),
            ),
            extracted_answer=None if final == "unparsed" else final,
            verifier=NAME,
        )

    def _finished(
        self, groups: list[Group], known: list[Verified], solve_s: float, verify_s: float
    ) -> Collected:
        tally = Tally()
        tally.add(groups)
        weights = self.classes.weights
        size = self._config.group_size
        metrics = {
            **tally.metrics(size),
            **verifier_metrics(known),
            "verifier_weight_correct": weights[RIGHT],
            "verifier_weight_wrong": weights[WRONG],
            "solve_s": solve_s,
            "rounds": 1.0,
            "surplus": 0.0,
            "stale_groups": 0.0,
            "generated_per_used": 1.0,
        }
        if known:
            metrics["solutions_correct"] = sum(one.right for one in known) / len(known)
        rollouts = [rollout for group in groups for rollout in group]
        return Collected(list(groups), rollouts, metrics, generate_s=verify_s)

    def scored(self, groups: Sequence[Group]) -> list[Scored]:
        """Rollouts with their reward and the weight of the solution's class."""
        weights = self.classes.weights
        scored = []
        for rollout in (rollout for group in groups for rollout in group):
            judgement = rollout.result.judgement
            if judgement is None:
                scored.append(Scored(rollout, None, in_loss=False))
                continue
            weight = weights[str(rollout.request.draw.problem.reference)]
            scored.append(Scored(rollout, judgement.reward, weight=weight))
        return scored

    def state_dict(self) -> dict[str, Any]:
        """See Source."""
        return {"stream": self._stream.state_dict(), "classes": self.classes.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Source."""
        self._stream.load_state_dict(state["stream"])
        self.classes.load_state_dict(state["classes"])


def _about(draw: Draw, solution: Response, question: Question, truth: bool | None) -> Draw:
    """The draw of a group of verifications; its problem is the solution."""
    problem = draw.problem
    text = f"{problem.question}\n{solution.text}"
    reference = "" if truth is None else RIGHT if truth else WRONG
    about = replace(
        problem, question=text, messages=(("user", text),), reference=reference, tests="", anchor=""
    )
    return Draw(draw.number, about, question.ids)


def _fault(result: Result, question: Question) -> Fault | None:
    if result.fault is not None:
        return result.fault
    if question.fits:
        return None
    return Fault(
        Reason.CONTEXT_TOO_LONG.value,
        "the solution does not fit the verifier's context beside method.cotraining.max_new_tokens",
        "INVALID_ARGUMENT",
    )


def _is_right(result: Result) -> bool | None:
    judgement = result.judgement
    return None if judgement is None else judgement.verdict == _CORRECT


def _ignored(_place: int, _response: Response) -> None:
    """Nobody waits for single verifications."""
