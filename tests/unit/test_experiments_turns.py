"""PAG and its failures (arXiv 2506.10406, sections 4.3 and A.4), by the trainer's own protocol,
turn rewards and advantages, with a policy of tables; and what the miniature's dialogues are."""

from __future__ import annotations

import random
from functools import cache

import pytest
from experiments.miniature import END
from experiments.pag import contest as pag
from experiments.pag.table import Table, train

from assay.trainer.settings import config as configs


@cache
def after(*ablated: str) -> dict[str, float]:
    """How dialogues go after PAG without some of its parts."""
    told = train([f"ablate={','.join(ablated)}"] if ablated else [])
    return {name.removeprefix("turns_"): value for name, value in told.items()}


def test_before_the_policy_calls_nearly_everything_correct() -> None:
    told = Table().metrics()
    assert told["turns_wrong_recall"] < 0.1
    assert told["turns_correct_recall"] > 0.9
    assert told["turns_final_correct"] <= told["turns_first_correct"] + 0.01


def test_the_verifier_learns_and_last_attempts_are_better_than_first_ones() -> None:
    told = after()
    assert told["wrong_recall"] > 0.6
    assert told["correct_recall"] > 0.85
    assert told["final_correct"] > told["first_correct"] + 0.02
    assert told["answer_changed"] > 0.8


def test_without_turn_independence_the_verifier_calls_everything_wrong() -> None:
    """Whatever the answer, "wrong" gets it another turn, which earns more."""
    told = after("turn-independence")
    assert told["correct_recall"] < 0.05
    assert told["wrong_recall"] > 0.95
    assert told["final_correct"] < after()["final_correct"]


def test_with_the_final_reward_alone_the_verifier_calls_everything_correct() -> None:
    told = after("turn-rewards", "turn-independence")
    assert told["correct_recall"] > 0.95
    assert told["wrong_recall"] < 0.1
    assert told["final_correct"] == pytest.approx(told["first_correct"], abs=0.01)


def test_always_revised_answers_are_not_changed_any_more() -> None:
    before = Table(["ablate=selective-revision"]).metrics()["turns_answer_changed"]
    told = after("selective-revision")
    assert told["answer_changed"] < 0.02 < before
    assert told["final_correct"] == pytest.approx(told["first_correct"], abs=0.01)
    assert told["wrong_recall"] > 0.6, "the verifier has nothing to do with it"


@pytest.mark.slow
def test_without_its_reward_the_first_attempt_gets_worse_for_the_verifiers_sake() -> None:
    """A careless answer is easily called wrong, and that earns the verifier's reward."""
    told = after("first-attempt-reward")
    assert told["first_correct"] < Table().metrics()["turns_first_correct"] - 0.03
    assert told["first_correct"] < after()["first_correct"] - 0.1
    assert told["wrong_recall"] > 0.9
    assert told["revised"] > 0.5
    without_any = train(["method.turns.first_reward=none"])
    assert without_any["turns_first_correct"] > told["first_correct"] + 0.03


# The miniature of `experiments pag`.


def test_the_first_stage_of_score_is_the_one_that_its_preset_tells_of() -> None:
    preset = pag.CONFIGS / "score.toml"
    assert f" {' '.join(pag.STAGE_1)}\n" in preset.read_text(encoding="utf-8")
    first = configs.load(preset, ["data=rows.jsonl", *pag.STAGE_1]).method
    assert (first.turns.kl, first.turns.first_reward, first.turns.shaping) == ("first", "none", 0)
    assert first.loss.kl_coef == 0.1


def test_the_pretraining_verifies_by_chance_and_compares_by_truth() -> None:
    dice = random.Random(0)
    said = [pag.drawn_turns(dice) for _ in range(4000)]
    verified = {True: [], False: []}  # type: dict[bool, list[bool]]
    for prompt, text in said:
        digits = [int(digit) for digit in prompt[: pag.LONG]]
        right = str(sum(digits) % pag.MODULUS)
        assert pag.asked(digits) == (prompt[: pag.LONG + 1], right)
        if len(prompt) > pag.LONG + 1:
            continue
        first, _, rest = text.partition(END)
        says = rest.endswith(pag.SAYS[True])
        if rest[0] == pag.COMPARE:
            assert says == (first == right)
            continue
        steps = rest[1 : 1 + pag.MIDDLE]
        assert rest == f"{pag.VERIFY}{steps}{pag.SAYS[says]}"
        assert (steps[-1] == right) or any(digits[pag.MIDDLE :])
        verified[first == right].append(says)
    for truth, verdicts in verified.items():
        assert len(verdicts) > 300, truth
        assert sum(verdicts) / len(verdicts) == pytest.approx(1 - pag.NOTICES, abs=0.03)
