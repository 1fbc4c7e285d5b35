"""How often our verifiers are wrong, on rows of ../shared/data whose truth is known.

    python -m bench reliability [--write]

Each verifier judges by its defaults, as a server has it, and accepts from half of its range. What
gets no judgement is in no rate, and counted. `--write` puts the figures into the file that comes
with the reward server; they hold no text of the rows. Intervals are Clopper and Pearson's, 95 %, as
if the rows were independent; of the model solutions many answer one question. `math` was written
with math-answers and near-misses at hand, so it is not asked about those.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.clients.reward import RewardClient
from assay.clients.services import EmbeddedServices
from assay.clients.types import Item, Result, VerifierInfo
from assay.kit.reliability import Reliability, error_rate, reliability_text
from assay.reward_server.reliability import SHIPPED
from bench.math_rows import DATA, PROBLEM_SETS, Row, gold_answers, labelled, pairs, read

Truth = Literal["labels", "construction"]
_MATH = ("math", "math-verify")


@dataclass(frozen=True, slots=True)
class Measure:
    """Rows of a domain, and who judges them."""

    domain: str
    truth: Truth
    verifiers: Sequence[str]
    rows: Sequence[tuple[str, Any, bool]]


def measures() -> Iterator[Measure]:
    """All of them; a row is a response, a reference and whether it is right."""
    yield Measure("math-answers", "labels", _MATH[1:], _of(equivalences()))
    yield Measure(
        "near-misses", "construction", _MATH[1:], _of(labelled("math_equiv_adversarial_dev.jsonl"))
    )
    yield Measure("sealed-pairs", "labels", _MATH, _of(pairs("sealed")))
    for name in PROBLEM_SETS.values():
        yield Measure(name.replace("_", "-"), "construction", _MATH, _of(gold_answers(name)))
    solutions = read("gsm8k_model_solutions.jsonl.gz", DATA)
    yield Measure(
        "gsm8k-solutions",
        "labels",
        _MATH,
        [(str(row["response"]), str(row["gold"]), bool(row["label"])) for row in solutions],
    )
    games = read("game24_gpt4_outputs.jsonl.gz", DATA)
    yield Measure(
        "game24-solutions",
        "labels",
        ("game24",),
        [(str(row["response"]), str(row["numbers"]), bool(row["reward"])) for row in games],
    )


def equivalences() -> list[Row]:
    """The labelled pairs of answers."""
    return labelled("math_equiv_dev.jsonl.gz")


def _of(rows: Sequence[Row]) -> list[tuple[str, Any, bool]]:
    return [(row.response, row.gold, row.right) for row in rows]


def run(arguments: list[str]) -> None:
    """Measures, prints a line for each verifier and domain, and writes if asked."""
    parser = argparse.ArgumentParser(prog="bench reliability", description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    found: list[tuple[str, Reliability]] = []
    with (
        EmbeddedServices(["reward"]) as services,
        RewardClient(services.address, timeout_s=600.0) as client,
    ):
        served = client.list_verifiers()
        for measure in measures():
            for name in measure.verifiers:
                info = served.find(name)
                if info is None:
                    print(f"{name} is not served here")
                    continue
                items = [Item(said, right, verifier=name) for said, right, _ in measure.rows]
                results = [
                    one
                    for start in range(0, len(items), served.limits.max_items)
                    for one in client.score(items[start : start + served.limits.max_items])
                ]
                one = reliability_of(measure, info, results)
                faults = sum(result.reward is None for result in results)
                print(f"{name} on {measure.domain}: {one.told(info.version)}; {faults} faults")
                found.append((name, one))
    if options.write:
        SHIPPED.write_text(reliability_text(found), encoding="utf-8")


def reliability_of(measure: Measure, info: VerifierInfo, results: Sequence[Result]) -> Reliability:
    """The rates that results give."""
    bound = (info.min_reward + info.max_reward) / 2
    judged: dict[bool, list[bool]] = {True: [], False: []}
    for (_, _, right), result in zip(measure.rows, results, strict=True):
        if result.reward is not None:
            judged[right].append(result.reward >= bound)
    rejected = [not accepted for accepted in judged[True]]
    return Reliability(
        measure.domain,
        error_rate(sum(judged[False]), len(judged[False])),
        error_rate(sum(rejected), len(rejected)),
        info.version,
        digest_of(measure.rows),
        measure.truth,
    )


def digest_of(rows: Sequence[tuple[str, Any, bool]]) -> str:
    """Of all rows, each as a line of JSON."""
    lines = (json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
