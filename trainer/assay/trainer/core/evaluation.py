"""The policy's answers on held-out prompts, judged by the services that train it.

One response a problem is the most likely one (greedy); several are sampled, for avg@k, pass@k,
maj@k and best@k. A fault that may pass is judged again; one that stays is left out of every
estimate. Sampled responses depend on the run's seed and on draw numbers of their own: an evaluation
leaves the run unchanged, and an unchanged policy answers alike.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from assay.kit.runs.records import Row
from assay.kit.runs.stats import Estimate, best_of_k, majority, mean_over_problems, pass_at_k
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.types import Draw, Request
from assay.trainer.rollouts.exchange import SINGLE, Talk, held
from assay.trainer.rollouts.outages import AWAY
from assay.trainer.rollouts.sharing import at_first, share
from assay.trainer.rollouts.types import OneRank, Ranks, Rollout, ScoringRound

if TYPE_CHECKING:
    from assay.trainer.engines.models import LoadedPolicy

FIRST_DRAW = 2**63
"""First number of an evaluation's draws; the run's count from 0 and stay below."""
RIGHT = frozenset({"correct", "better", "followed"})
"""Verdicts of a right answer."""
_LASTING = frozenset({"INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "UNIMPLEMENTED"})


@dataclass(frozen=True, slots=True)
class Answer:
    """One response to a held-out problem, judged; verdict and reward are None for a fault.

    Attributes:
        fault: its reason.
        sample: its place among the problem's responses, from 0.
        answer: as the verifier extracted it; None for none.
        score: of the verifier that chooses among samples; None without one, or for its fault.
        score_fault: the reason of that fault.
    """

    problem: str
    question: str
    reference: str | tuple[str, ...]
    response: str
    token_count: int
    truncated: bool
    verdict: str | None
    reward: float | None
    fault: str | None
    sample: int = 0
    answer: str | None = None
    score: float | None = None
    score_fault: str | None = None

    @property
    def correct(self) -> bool:
        """Judged, and right: correct, better than its anchor, or as instructed."""
        return self.verdict in RIGHT


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All answers of one evaluation.

    Attributes:
        answers: of dialogues the last attempts.
        turns: of dialogues, the metrics of their turns by name.
        origin: of a suite, what it was; see data.suites.SuiteItems.
        suites: by name, evaluated beside the held-out prompts.
    """

    answers: tuple[Answer, ...]
    turns: Mapping[str, float] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    suites: Mapping[str, Evaluation] = field(default_factory=dict)

    @property
    def judged(self) -> tuple[Answer, ...]:
        """Answers with a judgement."""
        return tuple(answer for answer in self.answers if answer.fault is None)

    @property
    def samples(self) -> int:
        """k, responses to each problem."""
        return 1 + max((answer.sample for answer in self.answers), default=0)

    def judged_by_problem(self) -> dict[str, list[Answer]]:
        """The judged answers of each problem, in order; possibly none."""
        found: dict[str, list[Answer]] = {answer.problem: [] for answer in self.answers}
        for answer in self.judged:
            found[answer.problem].append(answer)
        return found

    def pass_values(self, k: int) -> dict[str, float]:
        """pass@k of each problem with k judged answers or more; pass@1 is the share of correct."""
        return {
            problem: pass_at_k(len(answers), sum(answer.correct for answer in answers), k)
            for problem, answers in self.judged_by_problem().items()
            if len(answers) >= k
        }

    def pass_at(self, k: int) -> Estimate:
        """pass@k over problems with k judged answers or more."""
        counted = [len(answers) for answers in self.judged_by_problem().values()]
        trials = sum(count for count in counted if count >= k) / k
        return mean_over_problems(list(self.pass_values(k).values()), trials)

    def majority_at_k(self) -> Estimate | None:
        """maj@k over problems with a judged answer; None where no verifier extracts answers."""
        if self.samples == 1 or all(answer.answer is None for answer in self.judged):
            return None
        values = list(self.majority_values().values())
        return mean_over_problems(values, len(values))

    @property
    def unjudged(self) -> list[str]:
        """Problems without any judgement: they are in no estimate."""
        return [problem for problem, answers in self.judged_by_problem().items() if not answers]

    def majority_values(self) -> dict[str, float]:
        """maj@k of each problem with a judged answer."""
        return {
            problem: majority([a.answer for a in answers], [a.correct for a in answers])
            for problem, answers in self.judged_by_problem().items()
            if answers
        }

    def best_values(self, k: int) -> dict[str, float]:
        """best@k of each problem with k answers or more that are judged and scored."""
        found = {}
        for problem, answers in self.judged_by_problem().items():
            scores = [a.score for a in answers if a.score is not None]
            if len(scores) >= k:
                right = [a.correct for a in answers if a.score is not None]
                found[problem] = best_of_k(scores, right, k)
        return found

    def best_at(self, k: int) -> Estimate:
        """best@k over problems with k answers or more that are judged and scored."""
        values = list(self.best_values(k).values())
        return mean_over_problems(values, len(values) * max(1.0, self.samples / k))

    def summary(self) -> dict[str, Any]:
        """Counts and estimates, as data.

        Returns:
            `accuracy` with its 95 % interval: the mean over problems of the share of correct among
            judged (avg@k; accuracy for one greedy answer); `pass_at`, `maj` and `best_at` for
            several; `unjudged` names problems without any judgement.
        """
        judged, problems = self.judged, self.judged_by_problem()
        accuracy = self.pass_at(1)
        sizes = powers_up_to(self.samples) if self.samples > 1 else []
        passed = {k: self.pass_at(k) for k in sizes}
        voted = self.majority_at_k()
        scored = any(answer.score is not None for answer in self.answers)
        best = {k: self.best_at(k) for k in sizes if k > 1 and scored}
        return {
            "prompts": len(problems),
            "samples": self.samples,
            "judged": len(judged),
            "faults": len(self.answers) - len(judged),
            "unjudged": self.unjudged,
            "correct": sum(answer.correct for answer in judged),
            "accuracy": accuracy.value,
            "accuracy_low": accuracy.low,
            "accuracy_high": accuracy.high,
            "pass_at": {
                str(k): {**asdict(estimate), "left_out": len(problems) - estimate.problems}
                for k, estimate in passed.items()
            },
            "maj": asdict(voted) if voted else None,
            "mean_reward": _mean([a.reward for a in judged if a.reward is not None]),
            "mean_length": _mean([a.token_count for a in self.answers]),
            "truncated": _mean([a.truncated for a in self.answers]),
            **({"turns": dict(self.turns)} if self.turns else {}),
            **(
                {
                    "best_at": {str(k): asdict(estimate) for k, estimate in best.items()},
                    "score_faults": sum(a.score_fault is not None for a in self.answers),
                }
                if best
                else {}
            ),
        }

    def row(self, step: int) -> Row:
        """The estimates as a flat row of evals.jsonl; `step` is 0 before training."""
        told = self.summary()
        row: Row = {
            "step": step,
            **{key: told[key] for key in told if key not in _NESTED},
            "unjudged": len(told["unjudged"]),
            **self.turns,
        }
        estimates = {f"pass@{k}": told["pass_at"][k] for k in told["pass_at"] if k != "1"}
        estimates |= {f"best@{k}": found for k, found in told.get("best_at", {}).items()}
        if told["maj"] is not None:
            estimates[f"maj@{self.samples}"] = told["maj"]
        for name, estimate in estimates.items():
            row[name] = estimate["value"]
            row[f"{name}_low"], row[f"{name}_high"] = estimate["low"], estimate["high"]
        for suite, evaluation in self.suites.items():
            own = evaluation.row(step)
            row |= {f"{suite}/{key}": value for key, value in own.items() if key != "step"}
        return row

    def to_json(self) -> dict[str, Any]:
        """Data for `from_json`."""
        told: dict[str, Any] = {"answers": [asdict(answer) for answer in self.answers]}
        if self.turns:
            told["turns"] = dict(self.turns)
        if self.origin:
            told["origin"] = dict(self.origin)
        if self.suites:
            told["suites"] = {name: suite.to_json() for name, suite in self.suites.items()}
        return told

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evaluation:
        """Reads what `to_json` gave."""
        return cls(
            tuple(Answer(**answer) for answer in data["answers"]),
            data.get("turns", {}),
            data.get("origin", {}),
            {name: cls.from_json(suite) for name, suite in data.get("suites", {}).items()},
        )


_NESTED = ("pass_at", "maj", "best_at", "turns", "unjudged")


def powers_up_to(k: int) -> list[int]:
    """1, 2, 4, ... below k, and k."""
    return [2**n for n in range(k.bit_length()) if 2**n < k] + [k]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def evaluate(
    problems: Sequence[Problem],
    sampler: Sampler,
    open_round: Callable[[], ScoringRound],
    encode: Callable[[Problem], Sequence[int]],
    *,
    samples: int = 1,
    first: int = FIRST_DRAW,
    retries: int = 0,
    open_scoring: Callable[[], ScoringRound] | None = None,
    ranks: Ranks | None = None,
    on_progress: Callable[[int], None] = lambda _done: None,
    on_rollouts: Callable[[Sequence[Rollout]], None] = lambda _mine: None,
) -> Evaluation:
    """Has every problem answered, and the answers judged while others are being generated.

    Problems are the same list on every process. The sampler takes the likeliest tokens for one
    response, and draws for more; the first problem's draw has the number `first`. `open_round` is
    called once, and at most `retries` times more for faults that may pass; `open_scoring` once, for
    the scores that choose among samples. `on_progress` gets the number of problems answered, over
    all processes; `on_rollouts` this process's judged samples.

    Returns:
        In the first process all answers, problem by problem; in the others their own.

    Raises:
        OutageError: the reward services were away for too long.
    """
    if not problems:
        return Evaluation(())
    ranks = ranks or OneRank()
    requests = requests_of(problems, encode, samples, first)
    mine = answered(
        requests,
        sampler,
        open_round(),
        samples=samples,
        ranks=ranks,
        whole=open_scoring is not None,
        on_progress=on_progress,
    )
    for _ in range(retries):
        mine = asked_again(mine, open_round)
    on_rollouts(mine)
    answers = list(map(answer_of, gathered(mine, requests, ranks)))
    if open_scoring is not None:
        scored = gathered(judged_by(mine, open_scoring()), requests, ranks)
        answers = [
            replace(
                answer,
                score=one.result.reward,
                score_fault=one.result.fault.reason if one.result.fault else None,
            )
            for answer, one in zip(answers, scored, strict=True)
        ]
    return Evaluation(tuple(answers))


def asked_again(
    rollouts: Sequence[Rollout], open_round: Callable[[], ScoringRound]
) -> list[Rollout]:
    """The rollouts, those with a fault that may pass judged once more.

    An item that cannot be judged stays a fault, and services that are away were waited for.
    """
    due = [
        place
        for place, one in enumerate(rollouts)
        if not one.turns
        and (fault := one.result.fault) is not None
        and fault.code not in _LASTING
        and fault.reason not in AWAY
    ]
    settled = list(rollouts)
    if due:
        again = judged_by([rollouts[place] for place in due], open_round())
        for place, one in zip(due, again, strict=True):
            settled[place] = one
    return settled


def judged_by(rollouts: Sequence[Rollout], scoring: ScoringRound) -> list[Rollout]:
    """The rollouts of one response each, with the results of another round."""
    for one in rollouts:
        scoring.submit(one.request, one.response)
    results = scoring.results()
    return [replace(one, result=result) for one, result in zip(rollouts, results, strict=True)]


def requests_of(
    problems: Sequence[Problem],
    encode: Callable[[Problem], Sequence[int]],
    samples: int,
    first: int = FIRST_DRAW,
) -> list[Request]:
    """Requests for held-out problems, problem by problem, their draws numbered from `first`."""
    draws = [Draw(first + n, problem, tuple(encode(problem))) for n, problem in enumerate(problems)]
    return [Request(draw, index) for draw in draws for index in range(samples)]


def answered(
    requests: Sequence[Request],
    sampler: Sampler,
    scoring: ScoringRound,
    *,
    samples: int,
    ranks: Ranks,
    talk: Talk = SINGLE,
    whole: bool = False,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> list[Rollout]:
    """This process's share of all samples, judged, in order; see `evaluate`.

    With `whole` one process has all samples of a problem.
    """
    problems, unit = len(requests) // samples, samples if whole else 1
    share = math.ceil(len(requests) / unit / ranks.count) * unit
    return held(
        sampler,
        requests[ranks.index * share : (ranks.index + 1) * share],
        scoring,
        talk,
        on_progress=lambda done: on_progress(min(problems, done * ranks.count // samples)),
    )


def gathered(
    mine: Sequence[Rollout], requests: Sequence[Request], ranks: Ranks
) -> Sequence[Rollout]:
    """All samples in the first process, in the order of requests; in the others their own.

    Raises:
        OutageError: one of the processes lacked the reward services for too long.
    """
    whole = at_first([tuple(share(mine, requests, ranks))], ranks)
    return whole[0] if whole else mine


def answer_of(rollout: Rollout) -> Answer:
    """A sample as an answer: of a dialogue its last attempt."""
    problem, response = rollout.request.draw.problem, rollout.response
    attempts = [turn.result for turn in rollout.turns if turn.result is not None]
    result = attempts[-1] if attempts else rollout.result
    judgement, fault = result.judgement, result.fault
    return Answer(
        problem=problem.id,
        question=problem.question,
        reference=problem.reference,
        response=response.text,
        token_count=rollout.length,
        truncated=response.truncated,
        verdict=judgement.verdict if judgement else None,
        reward=judgement.reward if judgement else None,
        fault=fault.reason if fault else None,
        sample=rollout.request.index,
        answer=judgement.extracted_answer if judgement else None,
    )


def end_token_ids(policy: LoadedPolicy) -> frozenset[int]:
    """Tokens that end a response: the tokenizer's and the model's."""
    configured = policy.model.generation_config.eos_token_id
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(int(i) for i in [*ids, policy.tokenizer.eos_token_id] if i is not None)
