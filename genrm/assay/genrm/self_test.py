"""Self-tests: a model judges known answers by a template before it judges anything else by it.

A judge is fit where the chance that a right response scores above a wrong one (the area under the
ROC curve) is at least `LEAST_AUC`, and it judged at least `LEAST_SHARE` of them. A judge that says
"correct" to everything, goes by the place, or would rather say something else is unfit: each item
that asks it by this template is the fault JUDGE_UNFIT.

Verdicts read from probabilities are tested as soon as the model answers: 24 short prompts for each
template, and items wait for theirs. Written ones, earlier versions and those about a criterion are
tested before their first use, because that takes long. A test in which too little was judged counts
for `RETRY_S`, since an engine may have been at fault.

A judge of another field than easy questions is tested on known answers of that field: its template
brings some, or the model's settings name a file (`known`).

Not covered: that a fit judge judges well. These answers are easy on purpose; `assay eval-judge`
measures it on yours. Scalar heads and step heads read no template and are not tested.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.clients.judging.rubrics import Criterion, CriterionKind
from assay.clients.judging.types import ModelJudgement, ScoringMode
from assay.genrm.domain import (
    CandidatePair,
    CandidateResponse,
    CandidateRubric,
    ChatMessage,
    ResolvedJudgeSettings,
    Run,
)
from assay.genrm.driving import RequestBatcher, drive
from assay.genrm.engines.base import Choose, EngineError, Request, Write
from assay.genrm.judges import judge_pair, judge_response
from assay.genrm.judges.rubrics.criteria import CriterionReading, judge_criterion
from assay.genrm.models import ServedModel
from assay.genrm.templates import KnownCase, Template, Templates, read_cases, shipped_cases
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason
from assay.kit.runs.stats import auc

LEAST_AUC = 0.8
LEAST_SHARE = 0.75
WRITTEN_TOKENS = 512
"""The most that a judge may write about a known answer."""
RETRY_S = 60.0

_log = logging.getLogger(__name__)
_TESTED = (
    "pointwise",
    "pairwise",
    "self-verification",
    "critique",
    "meta-critique",
    "criterion",
)


@dataclass(frozen=True, slots=True)
class Fitness:
    """How a model did by one template.

    Attributes:
        template: "name@version".
        scoring: how its verdicts were read.
        fit: it judges by this template.
        auc: the chance that a right response scores above a wrong one; None where fewer than
            `LEAST_SHARE` were judged.
        mass: the median share of the model's probability that the verdicts held; None where no
            probabilities were read.
        problem: what is wrong, and what to do; empty where it is fit.
    """

    template: str
    scoring: ScoringMode
    fit: bool
    auc: float | None = None
    mass: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Score:
    """What a known response got; `value` is None where it was not judged, for `fault`."""

    right: bool
    value: float | None = None
    mass: float | None = None
    fault: str = ""


@dataclass(slots=True)
class _Test:
    task: asyncio.Task[Fitness]
    began_s: float

    @property
    def counts(self) -> bool:
        """It runs, or its outcome still holds."""
        if not self.task.done():
            return True
        failed = self.task.cancelled() or self.task.exception() is not None
        if failed:
            return False
        return self.task.result().auc is not None or time.monotonic() - self.began_s < RETRY_S


class SelfTests:
    """The self-tests of one model, each run once. Belongs to one event loop.

    Args:
        served: the model, started.
        templates: all that the service knows.
        least_mass: the server's floor on the verdicts' share; None for the templates'.

    Raises:
        ConfigError: the file of known answers that the model's settings name is wrong.
    """

    def __init__(
        self, served: ServedModel, templates: Templates, least_mass: float | None = None
    ) -> None:
        known = served.config.known
        self._cases = read_cases(Path(known)) if known else shipped_cases()
        self._served = served
        self._templates = templates
        self._least_mass = least_mass
        self._tests: dict[tuple[str, ScoringMode], _Test] = {}

    def begin(self) -> None:
        """Begins the tests of the newest templates whose verdicts are read from probabilities.

        Those of rubrics' criteria begin with their first use: they are several, and few need them.
        """
        if not self._served.does("choose"):
            return
        for one in filter(self._templates.is_newest, self._templates.all()):
            if (
                one.kind in _TESTED
                and one.kind != "criterion"
                and _scoring(one, writes=False) == "token-probability"
            ):
                self._test(one, "token-probability")

    async def require(self, request: Request) -> None:
        """Returns where the model is fit for what the request asks by its template.

        Raises:
            Unjudgeable: JUDGE_UNFIT.
        """
        if not isinstance(request, Choose | Write) or not request.prompt.template:
            return
        template = self._templates.of(request.prompt.template)
        if template is None or template.kind not in _TESTED:
            return
        task = self._test(template, _scoring(template, writes=isinstance(request, Write)))
        # A caller that leaves does not end the test.
        found = task.result() if task.done() else await asyncio.shield(task)
        if not found.fit:
            raise Unjudgeable(Reason.JUDGE_UNFIT, f"model {self._served.name}: {found.problem}")

    async def close(self) -> None:
        """Ends the tests that run."""
        tasks = [test.task for test in self._tests.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def found(self) -> list[Fitness]:
        """What is known so far, sorted by template."""
        ended = [test.task for test in self._tests.values() if test.counts and test.task.done()]
        found = (task.result() for task in ended)
        return sorted(found, key=lambda one: (one.template, one.scoring))

    def _test(self, template: Template, scoring: ScoringMode) -> asyncio.Task[Fitness]:
        key = (template.ref, scoring)
        test = self._tests.get(key)
        if test is None or not test.counts:
            task = asyncio.create_task(self._run(template, scoring))
            test = self._tests[key] = _Test(task, time.monotonic())
        return test.task

    async def _run(self, template: Template, scoring: ScoringMode) -> Fitness:
        refines = template.kind == "meta-critique"
        settings = ResolvedJudgeSettings(
            "" if refines else template.ref,
            scoring,
            votes=1,
            temperature=0.0,
            max_tokens=min(template.max_tokens, WRITTEN_TOKENS),
            overflow="keep-ends",
            meta_critique=refines,
            least_mass=self._least_mass,
        )
        batcher = RequestBatcher(self._served.engine)
        cases = template.cases or self._cases
        asked = [self._judged(case, template, settings, batcher) for case in cases]
        scores = [score for some in await asyncio.gather(*asked) for score in some]
        found = _fitness(template.ref, scoring, scores)
        _tell(self._served.name, found)
        return found

    async def _judged(
        self,
        case: KnownCase,
        template: Template,
        settings: ResolvedJudgeSettings,
        batcher: RequestBatcher,
    ) -> list[_Score]:
        """Both responses of a case, or its pair with each of them first."""
        info, templates = self._served.info, self._templates
        asked = (ChatMessage("user", case.question),)
        if template.kind == "pairwise":
            truth = case.ground_truth if "ground_truth" in template.places else ""
            pair = CandidatePair(asked, case.right, case.wrong, truth)
            try:
                found = await drive(judge_pair(pair, settings, info, templates), batcher)
            except (Unjudgeable, EngineError) as error:
                return [_unjudged(right, error) for right in (True, False)]
            return [
                _Score(True, found.forward, found.verdict_mass),
                _Score(False, 1.0 - found.reverse, found.verdict_mass),
            ]
        scores = []
        for right, text in ((True, case.right), (False, case.wrong)):
            run: Run[CriterionReading] | Run[ModelJudgement]
            if template.kind == "criterion":
                kind: CriterionKind = "graded" if len(template.verdicts) > 2 else "binary"
                criterion = Criterion("right", case.rubric, kind=kind)
                shown = CandidateRubric(asked, text, (criterion,))
                run = judge_criterion(shown, criterion, settings, info, templates)
            else:
                item = CandidateResponse(asked, text, **_against(template, case))
                run = judge_response(item, settings, info, templates)
            try:
                one: CriterionReading | ModelJudgement = await drive(run, batcher)
            except (Unjudgeable, EngineError) as error:
                scores.append(_unjudged(right, error))
            else:
                scores.append(_Score(right, one.score, one.verdict_mass))
        return scores


def _scoring(template: Template, *, writes: bool) -> ScoringMode:
    """How a template's verdicts are read; reasons are tested by what the judge writes."""
    if template.kind in ("critique", "meta-critique"):
        return "consensus"
    return "votes" if writes or template.style == "reasoned" else "token-probability"


def _against(template: Template, case: KnownCase) -> dict[str, str]:
    for name in ("ground_truth", "rubric"):
        if name in template.places:
            return {name: getattr(case, name)}
    return {}


def _unjudged(right: bool, error: Unjudgeable | EngineError) -> _Score:
    mass = error.metadata.get("verdict_mass")
    fault = f"{error.reason}: {error.message}"
    return _Score(right, mass=None if mass is None else float(mass), fault=fault)


def _fitness(ref: str, scoring: ScoringMode, scores: Sequence[_Score]) -> Fitness:
    judged = [(one.value, one.right) for one in scores if one.value is not None]
    masses = [one.mass for one in scores if one.mass is not None]
    mass = statistics.median(masses) if masses else None
    remedy = "choose another model or template"
    if len(judged) < LEAST_SHARE * len(scores):
        first = next(one.fault for one in scores if one.fault)
        text = f"by {ref} it judged {len(judged)} of {len(scores)} known answers ({first})"
        return Fitness(ref, scoring, False, None, mass, f"{text}; {remedy}")
    area = auc(judged) or 0.0
    if area >= LEAST_AUC:
        return Fitness(ref, scoring, True, area, mass)
    text = (
        f"by {ref} it does not tell known right answers from wrong ones: a right one scores above "
        f"a wrong one with the chance {area:.2f}, {LEAST_AUC:g} is needed and 0.5 is guessing"
    )
    return Fitness(ref, scoring, False, area, mass, f"{text}; {remedy}")


def _tell(model: str, found: Fitness) -> None:
    if found.fit:
        share = "" if found.mass is None else f", verdicts hold {found.mass:.2g}"
        _log.info("model %s judges by %s: AUC %.2f%s", model, found.template, found.auc, share)
    else:
        _log.warning("model %s is not served so: %s", model, found.problem)
