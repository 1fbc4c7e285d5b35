"""`search-qa` beside the reward functions of verl and Search-R1, on rollouts that are made.

ASSAY_VERL and ASSAY_SEARCH_R1 name checkouts of verl and of PeterGriffinJin/Search-R1 (both
Apache-2.0), of which nothing is kept here. What may differ is skipped, and how often is bounded:
answers in what was found, more than ten of them, words against characters, and texts of which
SQuAD's form leaves nothing.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from assay.reward_server.domain import Candidate, Judgement, ParameterValue, VerifierItem
from assay.verifiers_extra.answers.search_qa import search_qa

ROUNDS = 20_000
GOLDS = ("Paris", "the Seine", "New York City", "no", "1999", "Zola", "Émile Zola")
TEXTS = (
    *("Paris", "paris.", "The Seine!", "Seine", "new york", "New York City", "I know no one", "no"),
    *(
        "1999",
        "in 1999",
        "Zola",
        "x. y",
        "z z",
        "the",
        " ",
        "knowing",
        "emile zola",
        "Émile Zola",
        "x" * 30,
    ),
)
MARKS = tuple(
    f"<{end}{name}>" for name in ("think", "search", "information", "answer") for end in ("", "/")
)
PROMPT = "Answer in marks, for example <answer> Beijing </answer>. Q\n"  # one answer: it wants two
TURN = "<|im_start|>assistant\n"
FORMAT = {"structured": 0.2, "retrieved": 0.1, "answered": 0.1, "trusted": True}


def module(variable: str, name: str) -> ModuleType:
    folder = os.environ.get(variable, "")
    if not folder:
        pytest.skip(f"{variable} names no checkout")
    path = Path(folder) / "verl" / "utils" / "reward_score" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def made(rng: random.Random) -> str:
    """A rollout in order, then up to three edits."""
    gap = rng.choice(("", "\n", " "))
    parts = ["<think>", rng.choice(TEXTS), "</think>"]
    for _ in range(rng.randint(0, 2)):
        parts += [gap, "<search>", rng.choice(TEXTS), "</search>", gap, "<information>"]
        parts += [rng.choice(TEXTS), " and ", rng.choice(TEXTS), "</information>", gap]
        parts += ["<think>", rng.choice(TEXTS), "</think>"]
    parts += [gap, "<answer>", rng.choice(TEXTS), "</answer>", gap]
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        at = rng.randrange(len(parts))
        match rng.randrange(4):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, rng.choice(MARKS))
            case 2:
                parts.insert(at, rng.choice(TEXTS))
            case _:
                parts[at] = rng.choice((*MARKS, *TEXTS))
    return "".join(parts)


def judged(text: str, golds: list[str], **parameters: ParameterValue) -> Judgement:
    complete = search_qa.spec.complete(parameters)
    return search_qa.judge(
        VerifierItem(Candidate(text), references=tuple(golds), parameters=complete)
    )


def differs(module: ModuleType, text: str, golds: list[str], *, characters: bool) -> str:
    """Why the verdicts may differ; empty for no reason."""
    outside = re.sub(r"<information>.*?(</information>|$)", "", text, flags=re.DOTALL)
    pattern = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
    if pattern.findall(outside) != pattern.findall(text) or text.count("</information>") > (
        text.count("<information>")
    ):
        return "an answer in what was found"
    if min(text.count("<answer>"), text.count("</answer>")) > 10:
        return "many answers"
    texts = [*golds, *pattern.findall(text)[-1:]]
    if not all(module.normalize_answer(one) for one in texts):
        return "nothing is left"
    blocks = re.findall(r"<information>(.*?)</information>", text, re.DOTALL)
    blocks += pattern.findall(text)[-1:] if characters else []
    for block in map(module.normalize_answer, blocks):
        for gold in map(module.normalize_answer, golds):
            if gold in block and f" {gold} " not in f" {block} ":
                return "characters"
    return ""


@pytest.mark.parametrize("measure", ["em", "subem"])
def test_verl(measure: str, capsys: pytest.CaptureFixture[str]) -> None:
    official = module("ASSAY_VERL", "search_r1_like_qa_em")
    function = official.compute_score if measure == "em" else official.compute_score_subem
    rng, found = random.Random(1), Counter[object]()
    for _ in range(ROUNDS):
        text, golds = made(rng), rng.sample(GOLDS, rng.randint(1, 3))
        wanted = function(text, {"target": golds})
        capsys.readouterr()
        if why := differs(official, text, golds, characters=measure == "subem"):
            found[why] += 1
            continue
        assert judged(text, golds, measure=measure).reward == wanted, (text, golds)
        found[wanted] += 1
    assert min(found[0], found[1]) > ROUNDS / 20
    assert found[0] + found[1] > ROUNDS / 2


def test_search_r1_format_aware(capsys: pytest.CaptureFixture[str]) -> None:
    official = module("ASSAY_SEARCH_R1", "qa_em_format")
    rng, found = random.Random(2), Counter[object]()
    for _ in range(ROUNDS):
        text, golds = made(rng), rng.sample(GOLDS, rng.randint(1, 3))
        wanted = official.compute_score_em(
            PROMPT + TURN + text,
            {"target": golds},
            structure_format_score=0.2,
            retrieval_score=0.1,
            final_format_score=0.1,
        )
        capsys.readouterr()
        if why := differs(official, text, golds, characters=False):
            found[why] += 1
            continue
        reward = judged(text, golds, **FORMAT).reward
        assert reward == pytest.approx(wanted), (text, golds)
        found[round(wanted, 3)] += 1
    assert all(found[value] > ROUNDS / 200 for value in (0.0, 0.1, 0.2, 0.3, 0.8, 1.0)), found
    assert sum(count for value, count in found.items() if isinstance(value, float)) > ROUNDS / 2
