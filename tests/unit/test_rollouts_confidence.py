"""P(correct) of verifications: where the verdict begins, and what the model says there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from assay.trainer.core.evaluation import FIRST_DRAW
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.turns.confidence import Confidence, until_verdict
from assay.trainer.methods.turns.dialogues import Dialogues
from assay.trainer.methods.turns.evaluation import evaluate_dialogues
from assay.trainer.rollouts.types import OneRank
from trainer_support import tiny_tokenizer
from turns_support import VERIFIES, Round, Speaker, decode

TOKENIZER = tiny_tokenizer()
END = TOKENIZER.eos_token_id


def ids_of(text: str) -> list[int]:
    return list(TOKENIZER(text)["input_ids"])


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ("2 + 2 = 4. The answer is correct.", "2 + 2 = 4. The answer is "),
        ("2 + 2 = 5?\nThe answer is wrong.", "2 + 2 = 5?\nThe answer is "),
        ("So.\n\nThe answer is wrong.\n", "So.\n\nThe answer is "),
        ("Fine.\nVerdict: correct", "Fine.\nThe answer is "),
        ("I cannot tell", "I cannot tell The answer is "),
        ("I cannot tell\n", "I cannot tell\nThe answer is "),
        ("The answer is wrong.", "The answer is "),
        ("", "The answer is "),
    ],
)
def test_where_the_verdict_begins(said: str, before: str) -> None:
    ids, correct, wrong = until_verdict(ids_of(said), TOKENIZER)
    assert TOKENIZER.decode(list(ids)) == before
    assert (TOKENIZER.decode([correct]), TOKENIZER.decode([wrong])) == ("c", "w")


def tiny_model() -> Any:
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.manual_seed(3)
    make: Any = AutoModelForCausalLM.from_config
    return make(
        LlamaConfig(
            vocab_size=len(TOKENIZER), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
            num_attention_heads=2, num_key_value_heads=2, head_dim=8, max_position_embeddings=128,
            pad_token_id=TOKENIZER.pad_token_id, eos_token_id=END, bos_token_id=None,
        )
    )  # fmt: skip


@pytest.mark.parametrize("batch", [0, 2])
def test_it_is_what_one_pass_over_the_whole_text_says(batch: int) -> None:
    """Of texts of several lengths, padded on the left, with the end of the turn or without it."""
    model = tiny_model()
    said = ["The answer is correct.", "No: 2 is not 3. The answer is wrong.", "Hm"]
    asked = [
        Request(
            Draw(n, Problem("0", "?", (("user", "?"),), ""), tuple(ids_of("1+1=2?" + "!" * n))), 0
        )
        for n in range(3)
    ]
    responses = [
        Response((*ids_of(text), *([END] if n else [])), text, None, not n)
        for n, text in enumerate(said)
    ]
    confidence = Confidence(
        lambda: nullcontext(model), TOKENIZER, end_ids=frozenset({END}), batch=batch
    )
    chances = confidence(asked, responses)
    before = ["The answer is ", "No: 2 is not 3. The answer is ", "Hm The answer is "]
    for request, text, chance in zip(asked, before, chances, strict=True):
        ids = torch.tensor([[*request.draw.prompt_ids, *ids_of(text)]])
        with torch.no_grad():
            probs = model(ids).logits[0, -1].softmax(-1)
        c, w = (float(probs[ids_of(letter)[0]]) for letter in "cw")
        assert chance == pytest.approx(c / (c + w), abs=1e-5)
    assert model.training, "as it was"


def test_best_of_n_is_the_most_trusted_first_attempt_and_never_a_faulted_one() -> None:
    """Of two problems with three dialogues each; every answer is another, so that all are tied."""
    correct = {(0, 0): "correct", (1, 1): "correct", (1, 2): "fault"}
    sure = {(0, 0): 0.9, (0, 1): 0.2, (0, 2): 0.8, (1, 0): 0.6, (1, 1): 0.5, (1, 2): 1.0}

    def place(number: int, index: int) -> tuple[int, int]:
        return number - FIRST_DRAW, index

    def confidence(asked: Sequence[Request], said: Sequence[Response]) -> list[float]:
        assert len(asked) == len(said)
        assert all(request.turn == 1 for request in asked)
        return [sure[place(request.draw.number, request.index)] for request in asked]

    def judge(number: int, index: int, _turn: int) -> str:
        return correct.get(place(number, index), "incorrect")

    problems = [Problem(str(n), "?", (("user", "?"),), "") for n in range(2)]
    told: dict[bool, dict[str, float]] = {}
    for asks in (True, False):
        found = evaluate_dialogues(
            problems,
            Speaker(lambda _number, _index: "correct").sampler,
            lambda: Round(judge),
            lambda _problem: (1, 2),
            Dialogues(VERIFIES, decode, validation=True),
            samples=3,
            ranks=OneRank(),
            confidence=confidence if asks else None,
        )
        told[asks] = dict(found.turns)
    assert told[True].pop("turns_best_of_n") == 0.5
    assert told[True].pop("turns_first_majority") == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert told[True] == told[False], "nothing else depends on it"
