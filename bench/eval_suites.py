"""The suites known by name, each held against itself by its own verifier over real services.

For an item the suite's right answer must be right, and the right answer of another item wrong: a
boxed reference for mathematics, the canonical solution for programs. Of instructions no right
response is known: there every item must be judged, whatever the verdict. Files are looked for in
the folder that ASSAY_DATA names; a suite whose file is absent is passed over, and said so.
"""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.clients import Result
from assay.clients.services import EmbeddedServices
from assay.kit.runs.stats import wilson
from assay.trainer.core.evaluation import RIGHT
from assay.trainer.core.rewards import Sample, open_judge
from assay.trainer.data.sources import file_table
from assay.trainer.data.suites import FOLDER, NamedSuite, SuiteItems, known, load_suite
from assay.trainer.settings.sections import RewardConfig

SEED = 0


def right_answer(suite: NamedSuite, row: Any, reference: Any) -> str:
    """A response that must be right; of instructions any response."""
    match suite.table.verifier:
        case "code":
            return f"```python\n{row['prompt']}{row['canonical_solution']}\n```"
        case "ifeval":
            return "Here is my answer."
        case _:
            return f"So it is \\boxed{{{reference}}}."


def chosen(suite: NamedSuite, folder: Path, items: int) -> tuple[SuiteItems, list[Any]]:
    """Some items of a suite, drawn by a fixed seed, and their rows."""
    file = suite.table.file
    assert file is not None
    whole = load_suite(suite, 1, str(folder))
    rows = file_table(str(folder / file.path)).rows
    places = list(range(len(rows)))
    random.Random(SEED).shuffle(places)
    places = sorted(places[: items or None])
    some = tuple(whole.problems[place] for place in places)
    return SuiteItems(suite, some, 1, whole.origin), [rows[place] for place in places]


def another(items: SuiteItems, right: Sequence[str]) -> list[str]:
    """For each item the answer of the next one with another reference."""
    texts = [(problem.reference, problem.tests) for problem in items.problems]
    found = []
    for place, text in enumerate(texts):
        turn = [(place + step) % len(texts) for step in range(1, len(texts))]
        found.append(next((right[n] for n in turn if texts[n] != text), ""))
    return found


def judged(target: str, items: SuiteItems, responses: Sequence[str]) -> list[Result]:
    """The verdict of the suite's verifier on a response to each item."""
    table = items.suite.table
    config = RewardConfig(
        target=target,
        verifier=table.verifier,
        parameters=dict(table.parameters),
        timeout_s=3000.0,
        max_outage_s=0.0,
    )
    samples = [
        Sample(problem.question, response, problem.reference, tests=problem.tests)
        for problem, response in zip(items.problems, responses, strict=True)
    ]
    with open_judge(config) as judge:
        return judge.score(samples)


def share(count: int, of: int) -> str:
    """A share with Wilson's 95 % interval."""
    low, high = wilson(count, of)
    return f"{count} of {of} ({100 * low:.1f} to {100 * high:.1f} %)"


def run(arguments: Sequence[str] = ()) -> None:
    """Prints a line for each suite."""
    parser = argparse.ArgumentParser(prog="python -m bench eval-suites", description=__doc__)
    parser.add_argument("--items", type=int, default=0, help="of each suite; 0 for all")
    parser.add_argument("--suite", action="append", choices=sorted(known()), help="these alone")
    asked = parser.parse_args(arguments)
    folder = Path(os.environ.get(FOLDER, "data"))
    with EmbeddedServices(("sandbox", "reward")) as services:
        for name in asked.suite or known():
            suite = known()[name]
            if suite.table.file is None or not (folder / suite.table.file.path).is_file():
                print(f"{name}: not there: {suite.table.file and suite.table.file.path}")
                continue
            items, rows = chosen(suite, folder, asked.items)
            right = [
                right_answer(suite, row, problem.reference)
                for row, problem in zip(rows, items.problems, strict=True)
            ]
            own = judged(services.address, items, right)
            other = judged(services.address, items, another(items, right))
            faults = Counter(one.fault.reason for one in (*own, *other) if one.fault)
            accepted = [
                problem.id
                for problem, one in zip(items.problems, own, strict=True)
                if one.judgement is not None and one.judgement.verdict in RIGHT
            ]
            refused = [one.id for one in items.problems if one.id not in set(accepted)]
            wrong = sum(
                one.judgement is not None and one.judgement.verdict in RIGHT for one in other
            )
            count = sum(one.judgement is not None for one in own)
            if suite.table.verifier == "ifeval":
                print(f"{name}: judged {share(count, len(own))}; faults {dict(faults) or 'none'}")
                continue
            print(
                f"{name}: right accepted {share(len(accepted), count)}; another item's answer "
                f"accepted {share(wrong, len(other))}; faults {dict(faults) or 'none'}"
                + (f"; refused: {', '.join(refused[:12])}" if refused else ""),
                flush=True,
            )
