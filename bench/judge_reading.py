"""How much of what a weak judge writes can be read: freely, and held to its form.

The 24 known answers of the self-tests: 12 questions, each with a right and a wrong response. Each
response gets a critique of its steps (`critique`) and a vote by fixed words (`quality@2`); the
questions' two responses are compared with reasons, in both orders (`preference-reasoned@1`). One
text each at temperature 1, seed 0. What cannot be read is written again under its form; there it
counts where the verdicts held at least half of the model's probability (the templates' floor).

ASSAY_BENCH_JUDGE names another model, ASSAY_BENCH_QUESTIONS how many questions.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.genrm.domain import (
    CandidatePair,
    CandidateResponse,
    ChatMessage,
    ResolvedJudgeSettings,
    Run,
)
from assay.genrm.engines import load_engine
from assay.genrm.engines.base import Answer, JudgeEngine, ModelInfo, Request, Write, Written
from assay.genrm.engines.config import EngineConfig
from assay.genrm.judges import judge_pair, judge_response
from assay.genrm.templates import KnownCase, load_templates, shipped_cases
from assay.genrm.templates.template import LEAST_MASS
from assay.kit.faults import Unjudgeable

MODEL = "smollm2-135m-instruct"
QUESTIONS = 12
TEMPLATES = load_templates()
COMPARE = "preference-reasoned@1"
TOKENS = {"critique": 128, "quality@2": 8, COMPARE: 128}


@dataclass(frozen=True, slots=True)
class Reading:
    """What one kind of template came to.

    Attributes:
        free: texts written freely.
        unread: of those that could not be read.
        lost: of those that could not be read under their form either.
        shares: of the verdicts' probability, of each text under a form.
    """

    free: int
    unread: int
    lost: int
    shares: tuple[float, ...]


def runs_of(cases: Sequence[KnownCase], model: ModelInfo) -> dict[str, list[Run[Any]]]:
    """A judge's run for each response, or pair, by template."""

    def settings(template: str) -> ResolvedJudgeSettings:
        scoring = "consensus" if template == "critique" else "votes"
        limit = TOKENS[template]
        return ResolvedJudgeSettings(
            template, scoring, 1, 1.0, limit, overflow="keep-ends", least_mass=0.0
        )

    found: dict[str, list[Run[Any]]] = {name: [] for name in TOKENS}
    for case in cases:
        asked = (ChatMessage("user", case.question),)
        for text in (case.right, case.wrong):
            for name in ("critique", "quality@2"):
                item = CandidateResponse(asked, text)
                found[name].append(judge_response(item, settings(name), model, TEMPLATES))
        both = CandidatePair(asked, case.right, case.wrong)
        found[COMPARE].append(judge_pair(both, settings(COMPARE), model, TEMPLATES))
    return found


async def drive(run: Run[Any], engine: JudgeEngine) -> list[tuple[Request, Answer]]:
    """What a judge asked, and the answers."""
    said: list[tuple[Request, Answer]] = []
    try:
        requests = next(run)
        while True:
            answers = await asyncio.gather(*map(engine.ask, requests))
            said += zip(requests, answers, strict=True)
            requests = run.send(tuple(answers))
    except (StopIteration, Unjudgeable):
        return said


def counted(said: list[tuple[Request, Answer]]) -> Reading:
    """Of all runs of one template; whatever cannot be read is asked for again."""
    texts = [(a, b) for a, b in said if isinstance(a, Write) and isinstance(b, Written)]
    free = [answer for request, answer in texts if request.form is None]
    held = [answer for request, answer in texts if request.form is not None]
    lost = sum(answer.finish == "length" for answer in held)
    return Reading(len(free), len(held), lost, tuple(a.mass for a in held if a.mass is not None))


def line(name: str, found: Reading, seconds: float) -> str:
    """A row of the table."""
    enough = sum(share >= LEAST_MASS for share in found.shares)
    middle = f"{statistics.median(found.shares):.2f}" if found.shares else "-"
    cells: list[object] = [f"`{name}`", found.free, found.unread, found.lost, enough, middle]
    return "| " + " | ".join(map(str, [*cells, f"{seconds:.0f}"])) + " |"


async def measure(say: Callable[[str], None] = print) -> None:
    """Prints the table."""
    path = os.environ.get("ASSAY_BENCH_JUDGE", MODEL)
    engine = load_engine("judge", EngineConfig(path=path))
    await engine.start()
    cases = shipped_cases()[: int(os.environ.get("ASSAY_BENCH_QUESTIONS", QUESTIONS))]
    say("| template | texts | unread | unread under the form | of them counted | share | seconds |")
    say("|---|---|---|---|---|---|---|")
    for name, runs in runs_of(cases, replace(engine.info, forms="again")).items():
        began_s = time.monotonic()
        said = await asyncio.gather(*(drive(run, engine) for run in runs))
        found = counted([one for some in said for one in some])
        say(line(name, found, time.monotonic() - began_s))
    await engine.close()


def run() -> None:
    """Runs the measurement."""
    asyncio.run(measure())


if __name__ == "__main__":
    run()
