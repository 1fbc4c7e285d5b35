"""Evaluation: who is asked what, in which order, on how many processes, and what comes of it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from assay.trainer.core.evaluation import (
    FIRST_DRAW,
    Answer,
    Evaluation,
    evaluate,
    powers_up_to,
)
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import EngineHost, Sampler
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.types import Draw, Request, Sampling
from rollouts_collecting_support import on_ranks
from trainer_records_support import ExactRound, Scripted, problem

PROBLEMS = [problem(n) for n in range(5)]


def encode(asked: Problem) -> tuple[int, ...]:
    return (len(asked.question), 7)


def cycling(request: Request) -> str:
    """Right, a fault, wrong, right, a fault, ... over a problem's samples, starting elsewhere."""
    turn = (request.index + request.draw.number) % 3
    return (request.draw.problem.reference, "!", "no")[turn]  # type: ignore[return-value]


def answers_of(evaluation: Evaluation) -> list[tuple[str, int, str]]:
    return [(answer.problem, answer.sample, answer.response) for answer in evaluation.answers]


def test_every_problem_is_asked_k_times_with_numbers_of_its_own() -> None:
    generator, scoring, seen = Scripted(cycling, backwards=True), ExactRound(), []
    evaluation = evaluate(
        PROBLEMS, generator, lambda: scoring, encode,
        samples=3, on_progress=seen.append,
    )  # fmt: skip
    asked = [request for call in generator.calls for request in call]
    assert [(r.draw.number - FIRST_DRAW, r.index) for r in asked] == [
        (n, index) for n in range(5) for index in range(3)
    ]
    assert asked[0].draw.prompt_ids == (4, 7)
    assert seen == [n // 3 for n in range(1, 16)]
    # judged in the order in which responses came back, and told apart all the same
    assert [(a.problem, a.sample) for a in evaluation.answers] == [
        (f"train-{n}", index) for n in range(5) for index in range(3)
    ]
    for answer in evaluation.answers:
        right = answer.response == answer.reference
        assert answer.correct == right
        assert (answer.fault is None) == (answer.response != "!")
        assert answer.answer == (None if answer.fault else answer.response)


def test_judging_begins_while_others_are_generated() -> None:
    scoring = ExactRound()
    judged_before_the_end: list[int] = []
    generator = Scripted(cycling)
    evaluate(
        PROBLEMS, generator, lambda: scoring, encode,
        on_progress=lambda _done: judged_before_the_end.append(len(scoring.seen)),
    )  # fmt: skip
    assert judged_before_the_end == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("processes", [2, 3, 4, 7])
def test_processes_share_the_work(processes: int) -> None:
    alone = evaluate(PROBLEMS, Scripted(cycling), ExactRound, encode, samples=2)

    def work(rank: Any) -> tuple[Any, int]:
        generator, scoring = Scripted(cycling), ExactRound()
        together = evaluate(PROBLEMS, generator, lambda: scoring, encode, samples=2, ranks=rank)
        return together, len(scoring.seen)

    (first, _), *others = found = on_ranks(processes, work)
    assert first == alone
    assert sum(judged for _, judged in found) == 10
    own = [answer for evaluation, _ in others for answer in evaluation.answers]
    assert list(alone.answers[-len(own) :]) == own


def test_more_processes_than_problems() -> None:
    def work(rank: Any) -> tuple[Any, list[int]]:
        generator = Scripted(cycling)
        both = evaluate(PROBLEMS[:2], generator, ExactRound, encode, ranks=rank)
        return both, [len(call) for call in generator.calls]

    found = on_ranks(4, work)
    assert [calls for _, calls in found] == [[1], [1], [], []]
    assert answers_of(found[0][0]) == answers_of(
        evaluate(PROBLEMS[:2], Scripted(cycling), ExactRound, encode)
    )


def test_without_problems_nobody_is_asked() -> None:
    def nobody() -> Any:
        raise AssertionError("asked")

    assert evaluate([], Scripted(cycling), nobody, encode) == Evaluation(())
    assert Evaluation(()).summary()["accuracy"] is None
    assert Evaluation(()).row(0)["accuracy"] is None


def several(verdicts: dict[str, list[str | None]]) -> Evaluation:
    """Answers from verdicts; a letter is the answer, upper case where it is correct."""
    return Evaluation(
        tuple(
            Answer(
                problem=name, question=name, reference="", response=said or "", token_count=10 + n,
                truncated=n == 0, reward=None if said is None else float(said.isupper()),
                verdict=None if said is None else "correct" if said.isupper() else "incorrect",
                fault="WORKER_DIED" if said is None else None, sample=n,
                answer=said.lower() if said else None,
            )
            for name, all_said in verdicts.items()
            for n, said in enumerate(all_said)
        )
    )  # fmt: skip


def test_faults_are_in_no_estimate() -> None:
    evaluation = several(
        {"a": ["X", "X", "y", "y"], "b": ["X", None, None, "y"], "c": [None] * 4, "d": ["y"] * 4}
    )
    told = evaluation.summary()
    assert (told["prompts"], told["samples"], told["judged"], told["faults"]) == (4, 4, 10, 6)
    assert told["accuracy"] == pytest.approx((0.5 + 0.5 + 0) / 3)  # not 3 of 10, and not over 4
    passed = told["pass_at"]
    assert set(passed) == {"1", "2", "4"}
    assert passed["1"]["value"] == told["accuracy"]
    assert passed["2"]["value"] == pytest.approx((5 / 6 + 1 + 0) / 3)
    assert passed["4"]["value"] == pytest.approx((1 + 0) / 2)
    assert [passed[k]["left_out"] for k in ("1", "2", "4")] == [1, 1, 2]
    assert [passed[k]["problems"] for k in ("1", "2", "4")] == [3, 3, 2]
    assert told["maj"]["value"] == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert told["maj"]["problems"] == 3


def test_a_row_is_flat() -> None:
    row = several({"a": ["X", "y"], "b": ["X", None]}).row(30)
    assert row["step"] == 30
    assert row["samples"] == 2
    assert row["pass@2"] == 1
    assert row["pass@2_low"] < 1 <= row["pass@2_high"]
    assert row["maj@2"] == pytest.approx(0.75)
    assert not [value for value in row.values() if isinstance(value, dict | list)]
    single = several({"a": ["X"], "b": ["y"]}).row(0)
    assert single["accuracy"] == 0.5
    assert not [key for key in single if "@" in key]


def test_answers_that_no_verifier_told_have_no_majority() -> None:
    evaluation = several({"a": ["X", "y"]})
    silent = Evaluation(
        tuple(Answer(**{**answer, "answer": None}) for answer in evaluation.to_json()["answers"])
    )
    assert silent.majority_at_k() is None
    assert silent.summary()["maj"] is None
    assert Evaluation.from_json(evaluation.to_json()) == evaluation


def test_answers_of_an_older_file_are_read() -> None:
    old = {
        key: value
        for key, value in several({"a": ["X"]}).to_json()["answers"][0].items()
        if key not in ("sample", "answer")
    }
    assert Evaluation.from_json({"answers": [old]}).samples == 1


def test_powers() -> None:
    assert [powers_up_to(k) for k in (1, 2, 3, 8, 12)] == [
        [1], [1, 2], [1, 2, 3], [1, 2, 4, 8], [1, 2, 4, 8, 12],
    ]  # fmt: skip


@pytest.fixture(scope="module")
def untrained() -> Any:
    """A policy of two tiny layers with random weights."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    from assay.trainer.engines.models import LoadedPolicy
    from trainer_support import tiny_tokenizer

    torch.manual_seed(0)
    tokenizer = tiny_tokenizer()
    settings = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    load: Any = AutoModelForCausalLM.from_config
    return LoadedPolicy(load(settings), tokenizer)


def test_greedy_answers_do_not_depend_on_their_neighbours(untrained: Any) -> None:
    import torch

    texts = ["1+1=", "what is 12 and 7?", "3"]
    untrained.model.train()
    before = torch.get_rng_state()
    requests = [
        Request(Draw(n, problem(n), tuple(untrained.tokenizer(text)["input_ids"])), 0)
        for n, text in enumerate(texts)
    ]
    host = EngineHost(
        lambda: nullcontext(untrained.model), untrained.tokenizer, 0, frozenset(), nullcontext
    )
    answers = []
    for rows in (0, 1):
        sampler = Sampler(HfEngine(host), Sampling(6, temperature=0.0, rows=rows))
        answers.append(sampler.generate(requests, lambda *_: None))
    assert [one.ids for one in answers[0]] == [one.ids for one in answers[1]]
    assert untrained.model.training
    assert torch.equal(torch.get_rng_state(), before)
    for request, answer in zip(requests, answers[0], strict=True):
        ids = list(request.draw.prompt_ids)
        for token in answer.ids:
            untrained.model.eval()
            logits = untrained.model(torch.tensor([ids])).logits[0, -1]
            assert token == int(logits.argmax())
            ids.append(token)
