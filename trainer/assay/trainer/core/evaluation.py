"""The policy's answers on held-out prompts, judged by the same services that train it.

One response a problem is the most likely one (greedy); several are sampled, for avg@k, pass@k and
maj@k. A response without a judgement is counted as a fault and left out of every estimate: a fault
is not a wrong answer. Sampled responses depend on the run's seed and on numbers of their own, so
that an evaluation does not move the run, and a policy that did not change answers as before.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from transformers import GenerationConfig

from assay.clients import Result
from assay.clients.runs.records import Row
from assay.trainer.core.estimates import (
    Estimate,
    majority,
    mean_over_problems,
    pass_at_k,
)
from assay.trainer.data.problems import Problem
from assay.trainer.engines.hf import is_sharded
from assay.trainer.engines.models import Policy
from assay.trainer.engines.types import Draw, Generator, Request, Response
from assay.trainer.rollouts.outages import refuse_given_up
from assay.trainer.rollouts.types import OneRank, Ranks, ScoringRound

FIRST_DRAW = 2**63
"""Numbers of an evaluation's draws; the run's own count from 0 and do not come here."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response to a held-out problem, judged.

    Attributes:
        problem: its id.
        question: the bare question.
        reference: what it was judged against.
        response: the policy's text.
        token_count: tokens of the response.
        truncated: the response was cut at the limit.
        verdict: the category; None for a fault.
        reward: the number that would train; None for a fault.
        fault: the reason, when there is no judgement.
        sample: its place among the problem's responses, from 0.
        answer: as the verifier found it in the response; None where it found or looked for none.
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

    @property
    def correct(self) -> bool:
        """Judged, and found correct, or better than its anchor."""
        return self.verdict in ("correct", "better")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All answers of one evaluation.

    Attributes:
        answers: of dialogues the last attempts.
        turns: of dialogues, the metrics of their turns by name; empty for single responses.
    """

    answers: tuple[Answer, ...]
    turns: Mapping[str, float] = field(default_factory=dict)

    @property
    def judged(self) -> tuple[Answer, ...]:
        """Answers with a judgement."""
        return tuple(answer for answer in self.answers if answer.fault is None)

    @property
    def samples(self) -> int:
        """k, responses to each problem."""
        return 1 + max((answer.sample for answer in self.answers), default=0)

    def judged_by_problem(self) -> dict[str, list[Answer]]:
        """The judged answers of each problem, in order; a problem without any has an empty list."""
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
        """pass@k over problems; problems with fewer than k judged answers are left out."""
        counted = [len(answers) for answers in self.judged_by_problem().values()]
        trials = sum(count for count in counted if count >= k) / k
        return mean_over_problems(list(self.pass_values(k).values()), trials)

    def majority_at_k(self) -> Estimate | None:
        """maj@k over problems with a judged answer; None where no verifier told answers."""
        if self.samples == 1 or all(answer.answer is None for answer in self.judged):
            return None
        values = [
            majority([a.answer for a in answers], [a.correct for a in answers])
            for answers in self.judged_by_problem().values()
            if answers
        ]
        return mean_over_problems(values, len(values))

    def summary(self) -> dict[str, Any]:
        """Counts and estimates, as data.

        Returns:
            `accuracy` with its 95 % interval: the mean over problems of the share of correct among
            judged (avg@k; accuracy for one greedy answer); `pass_at` and `maj` for several.
        """
        judged, problems = self.judged, self.judged_by_problem()
        accuracy = self.pass_at(1)
        sizes = powers_up_to(self.samples) if self.samples > 1 else []
        passed = {k: self.pass_at(k) for k in sizes}
        voted = self.majority_at_k()
        return {
            "prompts": len(problems),
            "samples": self.samples,
            "judged": len(judged),
            "faults": len(self.answers) - len(judged),
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
        }

    def row(self, step: int) -> Row:
        """The estimates as one flat row of evals.jsonl.

        Args:
            step: that the policy had made; 0 before training.
        """
        told = self.summary()
        row: Row = {
            "step": step,
            **{key: told[key] for key in told if key not in ("pass_at", "maj", "turns")},
            **self.turns,
        }
        estimates = {f"pass@{k}": told["pass_at"][k] for k in told["pass_at"] if k != "1"}
        if told["maj"] is not None:
            estimates[f"maj@{self.samples}"] = told["maj"]
        for name, estimate in estimates.items():
            row[name] = estimate["value"]
            row[f"{name}_low"], row[f"{name}_high"] = estimate["low"], estimate["high"]
        return row

    def to_json(self) -> dict[str, Any]:
        """As data, to be read back by `from_json`."""
        turns = {"turns": dict(self.turns)} if self.turns else {}
        return {"answers": [asdict(answer) for answer in self.answers], **turns}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evaluation:
        """Reads what `to_json` gave."""
        return cls(tuple(Answer(**answer) for answer in data["answers"]), data.get("turns", {}))


def powers_up_to(k: int) -> list[int]:
    """1, 2, 4, ... below k, and k."""
    return [2**n for n in range(k.bit_length()) if 2**n < k] + [k]


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def evaluate(
    problems: Sequence[Problem],
    generator: Generator,
    open_round: Callable[[], ScoringRound],
    encode: Callable[[Problem], Sequence[int]],
    *,
    samples: int = 1,
    batch_size: int = 50,
    ranks: Ranks | None = None,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> Evaluation:
    """Has every problem answered, and the answers judged while others are being generated.

    Every process asks for equally many responses, as sharded models need; what does not divide is
    filled with a response that nobody looks at.

    Args:
        problems: held out of the training; the same list on every process.
        generator: answers; `Greedy` for one response, a sampling one for more.
        open_round: begins to judge; called once.
        encode: the tokens that the policy is shown of a problem.
        samples: responses to each problem.
        batch_size: responses that the generator is asked for at a time.
        ranks: the processes; one by default.
        on_progress: called with the number of problems answered, over all processes.

    Returns:
        All answers, problem by problem; the same on every process.

    Raises:
        OutageError: the reward services were away for too long.
    """
    if not problems:
        return Evaluation(())
    ranks = ranks or OneRank()
    mine, fillers = questions(problems, encode, samples, ranks)
    told = answered(
        mine,
        fillers,
        generator,
        open_round(),
        batch_size=batch_size,
        on_progress=lambda done: on_progress(min(len(problems), done * ranks.count // samples)),
    )
    whole = ranks.gather([(answer_of(*one), one[2] if one[2].fault else None) for one in told])
    refuse_given_up(result for _, result in whole if result is not None)
    return Evaluation(tuple(answer for answer, _ in whole))


def questions(
    problems: Sequence[Problem],
    encode: Callable[[Problem], Sequence[int]],
    samples: int,
    ranks: Ranks,
) -> tuple[list[Request], list[Request]]:
    """What this process asks, and what it asks besides so that all ask equally many."""
    draws = [
        Draw(FIRST_DRAW + n, problem, tuple(encode(problem))) for n, problem in enumerate(problems)
    ]
    requests = [Request(draw, index) for draw in draws for index in range(samples)]
    share = math.ceil(len(requests) / ranks.count)
    first = ranks.index * share
    mine = requests[first : first + share]
    return mine, [requests[0]] * (share - len(mine))


def answered(
    mine: Sequence[Request],
    fillers: Sequence[Request],
    generator: Generator,
    scoring: ScoringRound,
    *,
    batch_size: int,
    on_progress: Callable[[int], None],
) -> list[tuple[Request, Response, Result]]:
    """This process's responses with what came of them, in order; see `questions`."""
    asked = [*mine, *fillers]
    responses: list[Response] = []
    submitted: list[int] = []
    for start in range(0, len(asked), batch_size):

        def on_finished(place: int, response: Response, start: int = start) -> None:
            if start + place < len(mine):
                submitted.append(start + place)
                scoring.submit(asked[start + place], response)

        responses += generator.generate(asked[start : start + batch_size], on_finished)
        on_progress(len(responses))
    by_place = dict(zip(submitted, scoring.results(), strict=True))
    return [(request, responses[place], by_place[place]) for place, request in enumerate(mine)]


def answer_of(request: Request, response: Response, result: Result) -> Answer:
    """A response with its judgement, as an answer."""
    problem, judgement, fault = request.draw.problem, result.judgement, result.fault
    return Answer(
        problem=problem.id,
        question=problem.question,
        reference=problem.reference,
        response=response.text,
        token_count=len(response.ids),
        truncated=response.truncated,
        verdict=judgement.verdict if judgement else None,
        reward=judgement.reward if judgement else None,
        fault=fault.reason if fault else None,
        sample=request.index,
        answer=judgement.extracted_answer if judgement else None,
    )


class Greedy:
    """Answers with the most likely tokens; draws no random numbers. A `Generator`.

    Args:
        policy: put into evaluation mode while a batch is generated, and back after it.
        max_new_tokens: limit of a response.
        model: what generates in place of the policy's model, where that is wrapped.
    """

    def __init__(self, policy: Policy, *, max_new_tokens: int, model: Any = None) -> None:
        self._policy = policy
        self._model = policy.model if model is None else model
        self._max_new_tokens = max_new_tokens

    def generate(
        self, requests: Sequence[Request], on_finished: Callable[[int, Response], None]
    ) -> list[Response]:
        """One response for each request, in order, all in one batch."""
        responses = _continue(
            self._policy,
            self._model,
            [list(request.draw.prompt_ids) for request in requests],
            self._max_new_tokens,
        )
        for place, response in enumerate(responses):
            on_finished(place, response)
        return responses


def generate_greedy(
    policy: Policy, prompts: Sequence[str], *, max_new_tokens: int, batch_size: int
) -> Iterator[list[Response]]:
    """The most likely continuation of each text, batch by batch.

    Args:
        policy: as for `Greedy`.
        prompts: rendered texts.
        max_new_tokens: limit of a response.
        batch_size: prompts at a time.
    """
    for start in range(0, len(prompts), batch_size):
        batch = policy.tokenizer(list(prompts[start : start + batch_size]))
        yield _continue(policy, policy.model, batch["input_ids"], max_new_tokens)


def _continue(
    policy: Policy, model: Any, prompts: Sequence[Sequence[int]], max_new_tokens: int
) -> list[Response]:
    ends, pad_id = end_token_ids(policy), policy.tokenizer.pad_token_id
    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=max_new_tokens,
        pad_token_id=pad_id,
        eos_token_id=sorted(ends),
    )
    longest = max(len(ids) for ids in prompts)
    padding = [longest - len(ids) for ids in prompts]
    ids_BT = torch.tensor(
        [[pad_id] * n + list(ids) for n, ids in zip(padding, prompts, strict=True)]
    )
    mask_BT = torch.tensor([[0] * n + [1] * (longest - n) for n in padding])
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), policy.autocast():
            out = model.generate(
                input_ids=ids_BT.to(model.device),
                attention_mask=mask_BT.to(model.device),
                generation_config=settings,
                synced_gpus=True if is_sharded(model) else None,
            )
    finally:
        model.train(training)
    return [_cut(ids, ends, policy.tokenizer) for ids in out[:, longest:].tolist()]


def end_token_ids(policy: Policy) -> frozenset[int]:
    """Tokens that end a response: the tokenizer's, and those of the model's own settings."""
    configured = policy.model.generation_config.eos_token_id
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(int(i) for i in [*ids, policy.tokenizer.eos_token_id] if i is not None)


def _cut(ids: list[int], ends: frozenset[int], tokenizer: Any) -> Response:
    stop = next((n for n, token in enumerate(ids) if token in ends), None)
    kept = tuple(ids if stop is None else ids[: stop + 1])
    text = tokenizer.decode(list(kept), skip_special_tokens=True)
    return Response(kept, text, None, truncated=stop is None)
