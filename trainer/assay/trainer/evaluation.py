"""The policy's greedy answers on held-out prompts, judged by the same services that train it.

An answer without a judgement is counted as a fault and left out of the accuracy: a fault is not a
wrong answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from transformers import GenerationConfig

from assay.clients.runs.stats import wilson
from assay.trainer.data import Problem, render
from assay.trainer.models import Policy
from assay.trainer.rewards import Judge, Sample


@dataclass(frozen=True, slots=True)
class Answer:
    """One held-out problem, answered and judged.

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

    @property
    def correct(self) -> bool:
        """Judged, and found correct."""
        return self.verdict == "correct"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All answers of one evaluation."""

    answers: tuple[Answer, ...]

    @property
    def judged(self) -> tuple[Answer, ...]:
        """Answers with a judgement."""
        return tuple(answer for answer in self.answers if answer.fault is None)

    def summary(self) -> dict[str, Any]:
        """Counts, accuracy with its 95 % Wilson interval, mean reward and length."""
        judged = self.judged
        correct = sum(answer.correct for answer in judged)
        low, high = wilson(correct, len(judged))
        return {
            "prompts": len(self.answers),
            "judged": len(judged),
            "faults": len(self.answers) - len(judged),
            "correct": correct,
            "accuracy": correct / len(judged) if judged else None,
            "accuracy_low": low,
            "accuracy_high": high,
            "mean_reward": statistics.fmean(a.reward for a in judged if a.reward is not None)
            if judged
            else None,
            "mean_length": statistics.fmean(a.token_count for a in self.answers)
            if self.answers
            else None,
            "truncated": statistics.fmean(a.truncated for a in self.answers)
            if self.answers
            else None,
        }

    def to_json(self) -> dict[str, Any]:
        """As data, to be read back by `from_json`."""
        return {"answers": [asdict(answer) for answer in self.answers]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evaluation:
        """Reads what `to_json` gave."""
        return cls(tuple(Answer(**answer) for answer in data["answers"]))


@dataclass(frozen=True, slots=True)
class Generated:
    """One greedy response."""

    text: str
    token_count: int
    truncated: bool


def generate_greedy(
    policy: Policy, prompts: Sequence[str], *, max_new_tokens: int, batch_size: int
) -> Iterator[list[Generated]]:
    """The most likely continuation of each prompt, batch by batch; draws no random numbers.

    Args:
        policy: put into evaluation mode while a batch is generated, and back after it.
        prompts: rendered texts.
        max_new_tokens: limit of a response.
        batch_size: prompts at a time.
    """
    tokenizer, model = policy.tokenizer, policy.model
    ends = end_token_ids(policy)
    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=max_new_tokens,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=sorted(ends),
    )
    for start in range(0, len(prompts), batch_size):
        batch = tokenizer(
            list(prompts[start : start + batch_size]),
            return_tensors="pt",
            padding=True,
            padding_side="left",
        )
        training = model.training
        model.eval()
        with torch.no_grad(), policy.autocast():
            out = model.generate(
                input_ids=batch["input_ids"].to(model.device),
                attention_mask=batch["attention_mask"].to(model.device),
                generation_config=settings,
            )
        model.train(training)
        yield [_cut(ids, ends, tokenizer) for ids in out[:, batch["input_ids"].shape[1] :].tolist()]


def end_token_ids(policy: Policy) -> frozenset[int]:
    """Tokens that end a response: the tokenizer's, and those of the model's own settings."""
    configured = policy.model.generation_config.eos_token_id
    ids = configured if isinstance(configured, list) else [configured]
    return frozenset(int(i) for i in [*ids, policy.tokenizer.eos_token_id] if i is not None)


def _cut(ids: list[int], ends: frozenset[int], tokenizer: Any) -> Generated:
    stop = next((n for n, token in enumerate(ids) if token in ends), None)
    kept = ids if stop is None else ids[: stop + 1]
    return Generated(
        tokenizer.decode(kept, skip_special_tokens=True), len(kept), truncated=stop is None
    )


def evaluate(
    policy: Policy,
    judge: Judge,
    problems: Sequence[Problem],
    *,
    max_new_tokens: int,
    batch_size: int,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> Evaluation:
    """Answers every problem greedily and has the answers judged.

    Args:
        policy: who answers.
        judge: who judges.
        problems: held out of the training.
        max_new_tokens: limit of a response.
        batch_size: prompts at a time.
        on_progress: called with the number of problems answered.
    """
    prompts = [render(problem, policy.tokenizer) for problem in problems]
    answers: list[Answer] = []
    for batch in generate_greedy(
        policy, prompts, max_new_tokens=max_new_tokens, batch_size=batch_size
    ):
        asked = problems[len(answers) : len(answers) + len(batch)]
        samples = [
            Sample(
                p.question,
                g.text,
                p.reference,
                group=p.id,
                token_count=g.token_count,
                truncated=g.truncated,
            )
            for p, g in zip(asked, batch, strict=True)
        ]
        for problem, generated, result in zip(asked, batch, judge.score(samples), strict=True):
            judgement, fault = result.judgement, result.fault
            answers.append(
                Answer(
                    problem=problem.id,
                    question=problem.question,
                    reference=problem.reference,
                    response=generated.text,
                    token_count=generated.token_count,
                    truncated=generated.truncated,
                    verdict=judgement.verdict if judgement else None,
                    reward=judgement.reward if judgement else None,
                    fault=fault.reason if fault else None,
                )
            )
        on_progress(len(answers))
    return Evaluation(tuple(answers))
