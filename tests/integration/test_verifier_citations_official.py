"""`citations` beside NeMo Gym's citation_if, on responses that are made from pieces.

ASSAY_NEMO_GYM names a checkout of NVIDIA-NeMo/Gym (Apache-2.0), of which nothing is kept here.
"""

from __future__ import annotations

import importlib.util
import os
import random
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from assay.reward_server.domain import Candidate, VerifierItem
from assay.verifiers_extra.answers.citations import citations
from assay.verifiers_extra.answers.marks import GRAMMARS

ROUNDS = 2_000  # for each grammar
IDS = ("citation_27bx", "citation_9k2m", "citation_zzz1")
SNIPPETS = ("citation_1:snippet_2", "citation_1:snippet_3", "citation_22:snippet_1")
FORMS = {
    "ascii_brackets": "[{}]",
    "cite_xml": "<cite>{}</cite>",
    "claim_wrap_xml": '<cite index="{}">It is so.</cite>',
    "fullwidth_brackets": "【{}】",
    "ref_colon": "[ref:{}]",
    "double_angle": "<<{}>>",
    "web_brackets": "[web:{}]",
    "paren_part": "({})",
    "markdown_footnote": "[^{}]",
    "curly_double": "{{{{{}}}}}",
    "angle_pipe": "<ref|{}>",
}
TEXTS = (
    "It is so.",
    " ",
    "Sources: ",
    "citation_1",
    "Citation_",
    "<cite>",
    "</cite>",
    "[1]",
    "(x)",
)


@pytest.fixture(scope="module")
def official() -> ModuleType:
    folder = os.environ.get("ASSAY_NEMO_GYM", "")
    if not folder:
        pytest.skip("ASSAY_NEMO_GYM names no checkout")
    path = Path(folder) / "resources_servers" / "citation_if" / "scorer.py"
    spec = importlib.util.spec_from_file_location("citation_if_scorer", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def made(rng: random.Random, form: str, ids: tuple[str, ...]) -> str:
    pieces = []
    for _ in range(rng.randint(1, 5)):
        named = ",".join(rng.sample(ids, rng.choice((1, 1, 1, 2))))
        if rng.random() < 0.15:
            named = rng.choice(("citation_xmpl", "citation_8", "", named.upper(), f"{named} "))
        pieces.append(form.format(named) if rng.random() < 0.6 else rng.choice(TEXTS))
        if rng.random() < 0.1:
            pieces.append("(x)")
    text = "".join(pieces) if rng.random() < 0.3 else "It is so. " + " ".join(pieces)
    if rng.random() < 0.15:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(("", " ", "[", "\n", "x")) + text[at + 1 :]
    return text


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_rewards_are_those_of_citation_if(grammar: str, official: ModuleType) -> None:
    rng, found = random.Random(grammar), Counter[tuple[str, float]]()
    for number in range(ROUNDS):
        snippets = number % 2 == 1
        ids = SNIPPETS if snippets else IDS
        row: dict[str, Any] = {
            "mode": "no_cite" if number % 5 == 4 else "cite",
            "grammar": grammar,
            "id_kind": "snippet" if snippets else "full_source",
            "id_regex": r"citation_[0-9]+:snippet_[0-9]+" if snippets else "citation_[a-z0-9]{4}",
            "valid_id_set": list(ids),
            "expected_ids": rng.choice((None, [ids[0]], list(ids[:2]))),
            "expected_slack": rng.randint(0, 1),
            "min_valid_citations": rng.randint(1, 2),
        }
        text = made(rng, FORMS[grammar], ids)
        if row["mode"] == "no_cite" and rng.random() < 0.5:
            text = rng.choice(TEXTS) + rng.choice(TEXTS)
        wanted, details = official.score_citation_if(text, 0, row)
        item = VerifierItem(Candidate(text), parameters=citations.spec.complete({}), data=row)
        judgement = citations.judge(item)
        assert judgement.reward == wanted, (text, row, details["gate_failed"])
        found[row["mode"], wanted] += 1
    assert min(found[mode, value] for mode in ("cite", "no_cite") for value in (0.0, 1.0)) > 40
