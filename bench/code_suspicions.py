"""How often a program's text is suspected: of honest programs, and of programs that attack a judge.

Honest: reference solutions of HumanEval, MBPP and MBPP+, and 100 programs of CodeGen-16B to each
problem of HumanEval (CodeT, arXiv 2207.10397), which were not trained against any judge. Attacks:
the Python programs called `forge_...` of tests/abuse and of shared/abuse.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from assay.reward_server.verifiers.code_suspicions import suspicions_of
from bench.math_rows import read as rows

ROOT = Path(__file__).resolve().parents[1]
ATTACKS = {
    "tests/abuse": ROOT / "tests" / "abuse" / "programs",
    "shared/abuse": ROOT.parent / "shared" / "abuse" / "programs",
}


def honest() -> Iterator[tuple[str, list[str]]]:
    """Names of sets, and their programs."""
    humaneval = rows("humaneval.jsonl.gz")
    yield (
        "HumanEval, references",
        [f"{row['prompt']}{row['canonical_solution']}" for row in humaneval],
    )
    yield "MBPP, references", [str(row["canonical_solution"]) for row in rows("mbpp.jsonl.gz")]
    plus = rows("mbpp_plus.jsonl.gz")
    yield "MBPP+, references", [str(row["canonical_solution"]) for row in plus]
    samples = rows("codet_humaneval_codegen16b_samples.jsonl.gz")
    texts = []
    for row in samples:
        assert isinstance(row["samples"], list)
        texts += [f"{row['prompt']}{sample}" for sample in row["samples"]]
    yield "HumanEval, CodeGen-16B", texts


def line(name: str, programs: Iterable[str]) -> str:
    """A row of the table: how many programs, how many suspected, of what, and how long it took."""
    texts = list(programs)
    began = time.perf_counter()
    found = [suspicions_of(text, calls=True) for text in texts]
    each_us = 1e6 * (time.perf_counter() - began) / max(1, len(texts))
    kinds = Counter(kind for kinds in found for kind in kinds)
    told = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())) or "none"
    return f"| {name} | {len(texts):,} | {sum(map(bool, found)):,} | {told} | {each_us:.0f} |"


def run() -> None:
    """Prints the table, and the attacks that no rule sees."""
    print("| programs | | suspected | of | us a program |")
    print("|---|---|---|---|---|")
    for name, programs in honest():
        print(line(name, programs), flush=True)
    unseen = []
    for name, folder in ATTACKS.items():
        paths = sorted(folder.glob("forge_*.py"))
        texts = {path.stem: path.read_text(encoding="utf-8", errors="replace") for path in paths}
        print(line(name, texts.values()))
        unseen += [stem for stem, text in texts.items() if not suspicions_of(text, calls=True)]
    print("not seen:", ", ".join(unseen))
