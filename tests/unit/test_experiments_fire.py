"""The task of strategies: what is right, and what the pretraining draws."""

from __future__ import annotations

import random
from collections import Counter

from experiments.fire import task as bench
from experiments.miniature import tokenizer_of

from assay.api.reward.v1 import reward_pb2


def item(response: str, reference: str, *, truncated: bool = False) -> reward_pb2.Item:
    made = reward_pb2.Item(id="0", response=response, truncated=truncated)
    made.reference.text = reference
    return made


def test_the_usual_strategy_is_right_for_half_of_the_problems() -> None:
    assert sum(bench.best(n) == "A" for n in range(bench.PROBLEMS)) == bench.PROBLEMS // 2
    assert len({bench.best(n) for n in range(bench.PROBLEMS)}) > 5


def test_right_is_a_strategy_and_its_digit_and_nothing_else() -> None:
    for problem in range(bench.PROBLEMS):
        reference = str(bench.leads_to(problem, bench.best(problem)))
        assert bench.is_right(item(f"{bench.best(problem)}{reference}", reference))
        for wrong in (reference, f"A{reference}{reference}", f"{reference}{reference}", "A", ""):
            assert not bench.is_right(item(wrong, reference))
        assert not bench.is_right(item(f"A{reference}", reference, truncated=True))


def test_the_pretraining_takes_the_usual_strategy_in_either_writing() -> None:
    dice = random.Random(0)
    drawn = [bench.drawn(dice) for _ in range(4000)]
    strategies = Counter(response[0] for _, response in drawn)
    assert abs(strategies["A"] / 4000 - bench.USUAL) < 0.02
    assert set(strategies) == set(bench.STRATEGIES)
    forms = Counter(prompt[-2] for prompt, _ in drawn)
    assert abs(forms["x"] / 4000 - 0.5) < 0.03
    tokenizer = tokenizer_of(bench.WORDS)
    for prompt, response in drawn[:50]:
        ids = tokenizer(prompt + response)["input_ids"]
        assert len(ids) == 4
        assert tokenizer.decode(ids) == prompt + response
