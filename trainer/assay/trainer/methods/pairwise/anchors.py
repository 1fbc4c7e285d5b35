"""The responses to beat, made before training: from the data, or by the initial policy.

Pairwise-RL (arXiv 2504.04950) compares a response with its prompt's anchor: a gold answer where
there is one, else the best of n samples of the initial policy by a scalar reward; a derivation, as
the paper's text was not at hand. One sample of the initial policy is a third choice, ours.

anchors.jsonl beside the run gets a row for each problem as it is made, so that a stopped run
continues. Samples depend on the run's seed and the problem's place in the data alone. A problem
whose samples are all blank, or not judged by the selector, has no anchor: its responses are faults
in training.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.clients import Result
from assay.kit.reasons import Reason
from assay.kit.runs.records import JsonLines, Row, mend, read_rows
from assay.trainer.core.rewards import Judge, sample_of
from assay.trainer.data.problems import Problem, Problems
from assay.trainer.engines.types import Draw, Generator, Request, Response
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.records.folder import RunFolder
from assay.trainer.records.progress import StepDisplay
from assay.trainer.rollouts.outages import Outage, given_up_by, outage_of
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.types import Ranks
from assay.trainer.settings.config import Config

FIRST_DRAW = 2**62
"""Draw numbers of anchors; the run's count from 0, those of evaluations from 2^63."""
_BATCHES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """The anchor of a problem.

    Attributes:
        anchor: None where there is none.
        score: the selector's; None without a selector.
        judged: samples that the selector judged.
        fault: why there is no anchor.
    """

    anchor: str | None
    score: float | None = None
    judged: int = 0
    fault: str | None = None


def choose(texts: Sequence[str], results: Sequence[Result] | None) -> Choice:
    """The best of a problem's samples, the first of equals. Pure.

    Blank ones do not count. Without results of a selector it is the first sample that is not blank.
    """
    written = [n for n, text in enumerate(texts) if text.strip()]
    if not written:
        return Choice(None, fault=Reason.MISSING_RESPONSE.value)
    if results is None:
        return Choice(texts[written[0]])
    scores = {n: reward for n in written if (reward := results[n].reward) is not None}
    if not scores:
        reasons = Counter(fault.reason for n in written if (fault := results[n].fault))
        return Choice(None, fault=reasons.most_common(1)[0][0])
    best = max(scores, key=lambda n: (scores[n], -n))
    return Choice(texts[best], scores[best], len(scores))


def key_of(problem: Problem) -> str:
    """A problem's key in anchors.jsonl: a digest of the question, whatever its place."""
    content = repr((problem.messages, problem.reference, problem.tests))
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def prepare_anchors(
    judge: Judge,
    config: Config,
    *,
    problems: Problems,
    stream: PromptStream,
    generator: Callable[[], Generator],
    encode: Callable[[Problem], Sequence[int]],
    ranks: Ranks,
    folder: RunFolder,
    display: StepDisplay,
    stop: Callable[[], bool],
    may_retry: bool,
) -> bool:
    """Makes the missing anchors and gives all of them to the judge; false when interrupted.

    `generator` makes the sampler of the initial policy, at most once; `stop` sees a signal of any
    process. `may_retry` retries problems that anchors.jsonl lists without an anchor; false once the
    policy has trained without them.

    Raises:
        ConfigError: the service does not serve the selector.
        TrainingStoppedError: more problems have no anchor than reward.max_fault_ratio allows.
    """
    pairwise = config.method.pairwise
    judge.in_pairs = pairwise.against == "group"
    if pairwise.anchors == "none":
        return True
    if pairwise.anchors == "data":
        everything = (*problems.train, *problems.eval)
        judge.anchors = {problem: problem.anchor for problem in everything}
        return True
    known = _read(folder)
    numbered = needed(problems, stream, config)
    missing = [
        (number, problem)
        for number, problem in numbered
        if (row := known.get(key_of(problem))) is None or (may_retry and row["anchor"] is None)
    ]
    if missing:
        made = _Maker(judge, config, generator(), encode, ranks).made(missing)
        total = len(numbered)
        keeper = _Keeper(
            folder, display, total=total, done=total - len(missing), writes=ranks.index == 0
        )
        if not keeper.keep(made, known, stop):
            return False
    anchors = {problem: known[key_of(problem)]["anchor"] for _, problem in numbered}
    _check(anchors, known, config, display)
    judge.anchors = {problem: text for problem, text in anchors.items() if text is not None}
    return True


def needed(problems: Problems, stream: PromptStream, config: Config) -> list[tuple[int, Problem]]:
    """The problems that the run will judge, with their places in the data; pure.

    Those that its draws reach, value pre-training included, and all held-out ones; with a selector
    all.
    """
    steps = config.run.steps + config.method.critic.pretrain_steps
    draws = steps * config.rollout.prompts_per_step
    reached = set(problems.train)
    if draws < len(problems.train) and stream.selector is None:
        reached = {stream.draw(number).problem for number in range(draws)}
    held_out = enumerate(problems.eval, start=len(problems.train))
    return [
        *((n, problem) for n, problem in enumerate(problems.train) if problem in reached),
        *held_out,
    ]


def _read(folder: RunFolder) -> dict[str, Row]:
    return {row["key"]: row for row in read_rows(folder.anchors)}


class _Keeper:
    """Writes rows as they are made, and shows progress.

    Args:
        total: problems that need an anchor.
        done: those of them that have one.
        writes: whether this process does.
    """

    def __init__(
        self, folder: RunFolder, display: StepDisplay, *, total: int, done: int, writes: bool
    ) -> None:
        self._display, self._total, self._done = display, total, done
        self._file: JsonLines | None = None
        if writes:
            mend(folder.anchors)
            self._file = JsonLines(folder.anchors)

    def keep(
        self, made: Iterator[list[Row]], known: dict[str, Row], stop: Callable[[], bool]
    ) -> bool:
        """Takes rows as they are made; false when it was interrupted."""
        display = self._display
        display.begin("anchors", self._total, self._done)
        try:
            while not stop():
                rows = next(made, None)
                if rows is None:
                    return True
                known.update((row["key"], row) for row in rows)
                if self._file is not None:
                    for row in rows:
                        self._file.write(row)
                self._done += len(rows)
                display.advance(self._done)
            display.note(f"interrupted with {self._done} of {self._total} anchors; they are kept")
            return False
        finally:
            display.end()
            if self._file is not None:
                self._file.close()


def _check(
    anchors: Mapping[Problem, str | None],
    known: Mapping[str, Row],
    config: Config,
    display: StepDisplay,
) -> None:
    lacking = [problem for problem, anchor in anchors.items() if anchor is None]
    if not lacking:
        return
    reasons = Counter(str(known[key_of(problem)]["fault"]) for problem in lacking)
    frequent = ", ".join(f"{reason} x{count}" for reason, count in reasons.most_common(3))
    lack = f"{len(lacking)} of {len(anchors)} problems have no anchor ({frequent})"
    if len(lacking) > config.reward.max_fault_ratio * len(anchors):
        raise TrainingStoppedError(
            f"{lack}; reward.max_fault_ratio allows {config.reward.max_fault_ratio:g}. Resume the "
            "run when the service answers"
        )
    display.note(f"warning: {lack}; their responses will be faults")


class _Maker:
    """Samples the initial policy, and chooses among the samples.

    Args:
        generator: samples from the initial policy.
        ranks: each samples and judges its share.

    Raises:
        ConfigError: the service does not serve the selector.
    """

    def __init__(
        self,
        judge: Judge,
        config: Config,
        generator: Generator,
        encode: Callable[[Problem], Sequence[int]],
        ranks: Ranks,
    ) -> None:
        pairwise = config.method.pairwise
        selects = pairwise.anchors == "best-of-n"
        self._samples = pairwise.n if selects else 1
        self._selector: Judge | None = None
        if selects:
            settings = replace(
                config.reward,
                verifier=pairwise.selector,
                parameters=pairwise.selector_parameters,
            )
            self._selector = judge.beside(settings)
        at_once = _BATCHES_AT_ONCE * config.eval.batch_size * ranks.count
        self._at_once = max(1, at_once // self._samples)
        self._generator = generator
        self._encode = encode
        self._ranks = ranks

    def made(self, problems: Sequence[tuple[int, Problem]]) -> Iterator[list[Row]]:
        for start in range(0, len(problems), self._at_once):
            yield self._rows(problems[start : start + self._at_once])

    def _rows(self, problems: Sequence[tuple[int, Problem]]) -> list[Row]:
        """Each process makes its share and sends it to the others."""
        share = math.ceil(len(problems) / self._ranks.count)
        first = self._ranks.index * share
        parcel = json.dumps(self._made(problems[first : first + share])).encode()
        everyone = [json.loads(one) for one in self._ranks.exchange([parcel] * self._ranks.count)]
        over = given_up_by(outage for outage, _ in everyone)
        if over is not None:
            raise over
        return [row for _, rows in everyone for row in rows]

    def _made(self, problems: Sequence[tuple[int, Problem]]) -> tuple[Outage | None, list[Row]]:
        requests = [
            Request(Draw(FIRST_DRAW + number, problem, tuple(self._encode(problem))), index)
            for number, problem in problems
            for index in range(self._samples)
        ]
        responses = self._generator.generate(requests, _ignore)
        results: list[Result] = []
        if self._selector is not None:
            results = self._selector.score(list(map(sample_of, requests, responses)))
        rows = []
        for n, (_, problem) in enumerate(problems):
            own = slice(n * self._samples, (n + 1) * self._samples)
            texts = [response.text for response in responses[own]]
            choice = choose(texts, None if self._selector is None else results[own])
            rows.append(_row(problem, choice, self._samples))
        return outage_of(results), rows


def _row(problem: Problem, choice: Choice, samples: int) -> dict[str, Any]:
    return {
        "problem": problem.id,
        "key": key_of(problem),
        "anchor": choice.anchor,
        "score": choice.score,
        "judged": choice.judged,
        "of": samples,
        "fault": choice.fault,
    }


def _ignore(_place: int, _response: Response) -> None:
    """Nothing overlaps here."""
