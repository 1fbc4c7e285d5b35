"""Every kind of suite against every trick, through a real service: a verdict that is no pass.

The tasks are in `forgeries`, the tricks in `forgery_tricks`. Right programs pass in every kind. In
every run of the tests each trick meets the kinds that fit its group best and one more, by turns;
the exhaustive ones add further kinds, up to the whole product.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pytest

from assay.clients import EmbeddedServices
from assay.clients.execution import ExecutionClient, Fault, Limits, TestJob, TestReport, TestResult
from forgeries import KINDS, TRUSTED, WRONG
from forgery_aliases import alias_jobs
from forgery_tricks import ENDLESS, GROUPS
from forgery_wire import COSTLY

CHUNK: Final = 128
# Of a cell. That a trick runs into them is a verdict as any other.
LIMITS: Final = Limits(wall_time_s=2.0, processes=32)
SHORT: Final = Limits(wall_time_s=1.0, cpu_time_s=1.0, processes=32)
AMPLE: Final = Limits(wall_time_s=2.0, memory_bytes=2**30)
LONGEST_S: Final = 15.0  # that a costly trick may keep a slot, a busy machine allowed for
STANDING: Final[Mapping[str, tuple[str, ...]]] = {
    "equal": ("unittest", "helper"),
    "liars": ("helper near", "iterated"),
    "values": ("calls", "asserts", "stdio checker"),
    "text": ("eval answer", "int of answer", "json answer", "stdio checker", "exec answer"),
    "raises": ("unittest", "pytest approx"),
    "ends": ("asserts", "unittest"),
    "library": ("unittest import", "check"),
    "shadows": ("implicit math", "unittest"),
    "harness": ("helper", "callback"),
    "wire": (),
}
# Where the trick happens to be the right program.
RIGHT: Final = frozenset(
    {
        ("Fraction", "fractions.Fraction"),
        ("Decimal", "decimal.Decimal"),
        ("Decimal", "fractions.Fraction"),
    }
)
# Large answers, and silence up to the limit: in the exhaustive tests only.
HEAVY: Final = frozenset(
    {
        "answers late", "frame truncated, at once", "frame truncated, then right", "long", "many",
        "many arguments", "public many", "tree h many", "tree long list", "tree long text",
        "tree many sets", "wide cycle",
    }
)  # fmt: skip
CORE: Final = tuple(name for name, kind in KINDS.items() if kind.core)

Cell = tuple[str, str, str]
"""A kind of suite, a group of tricks, a trick."""


@pytest.fixture(scope="module")
def client() -> Iterator[ExecutionClient]:
    flags = ("--slots", "2", "--languages", "python", "--log-level", "ERROR")
    with (
        EmbeddedServices(("sandbox",), arguments={"sandbox": flags}) as services,
        ExecutionClient(services.address_of("sandbox"), timeout_s=60.0) as client,
    ):
        assert "pid-namespace" in client.list_languages().isolation_layers
        yield client


def judged(client: ExecutionClient, jobs: Sequence[TestJob]) -> Iterator[tuple[str, TestResult]]:
    """What came of each job, with its name."""
    for start in range(0, len(jobs), CHUNK):
        chunk = jobs[start : start + CHUNK]
        for job, result in zip(chunk, client.run_tests(chunk), strict=True):
            yield job.id, result


def job_of(cell: Cell, source: str, limits: Limits = LIMITS) -> TestJob:
    kind, group, trick = cell
    name = f"{kind} x {group}: {trick}"[:200]
    return KINDS[kind].job(f"{source}\n{KINDS[kind].mount}", limits, name)


def hold_the_line(client: ExecutionClient, cells: Iterable[Cell], limits: Limits = LIMITS) -> None:
    """No cell is a fault, and none passed but those in which the test trusts the answer."""
    kept = [cell for cell in cells if (cell[0], cell[2]) not in RIGHT]
    sources = {**GROUPS, "endless": ENDLESS, "costly": COSTLY}
    jobs = [job_of(cell, sources[cell[1]][cell[2]], limits) for cell in kept]
    broken = []
    for cell, (name, result) in zip(kept, judged(client, jobs), strict=True):
        if isinstance(result, Fault):
            broken.append(f"{name}: FAULT {result.reason}: {result.message[:160]}")
        elif cell[:2] not in TRUSTED and any(outcome.passed for outcome in result.outcomes):
            broken.append(f"{name}: PASSED")
    assert not broken, f"{len(broken)} of {len(kept)} cells:\n" + "\n".join(broken)
    honest = [
        KINDS[name].job(KINDS[name].rights["plain"], name=name) for name in ("check", "pytest")
    ]
    assert all_pass(client, honest) == []


def all_pass(client: ExecutionClient, jobs: Sequence[TestJob]) -> list[str]:
    """Which of these right programs did not pass, and why."""
    wrong = []
    for name, result in judged(client, jobs):
        if not (isinstance(result, TestReport) and result.all_passed):
            wrong.append(f"{name}: {why(result)}")
    return wrong


def why(result: TestResult) -> str:
    if isinstance(result, Fault):
        return f"FAULT {result.reason}: {result.message[:160]}"
    failure = result.first_failure
    return "" if failure is None else f"{failure.verdict}: {failure.explanation[:160]}"


def turns(names: Sequence[str], count: int) -> list[Cell]:
    """Each trick with `count` of these kinds, by turns."""
    cells: list[Cell] = []
    for group, tricks in GROUPS.items():
        for trick in tricks:
            at = len(cells)
            cells += [(names[(at + i * 7) % len(names)], group, trick) for i in range(count)]
    return cells


def test_every_right_program_passes_in_every_kind(client: ExecutionClient) -> None:
    jobs = [
        kind.job(source, name=f"{name} / {right}")
        for name, kind in KINDS.items()
        for right, source in kind.rights.items()
    ]
    wrong = all_pass(client, jobs)
    assert not wrong, f"{len(wrong)} of {len(jobs)}:\n" + "\n".join(wrong)


def test_a_function_of_a_library_passes_as_the_program(client: ExecutionClient) -> None:
    jobs = alias_jobs()
    wrong = all_pass(client, list(jobs.values()))
    assert not wrong, f"{len(wrong)} of {len(jobs)}:\n" + "\n".join(wrong)


def test_a_plainly_wrong_program_fails_in_every_kind(client: ExecutionClient) -> None:
    jobs = [kind.job(WRONG + kind.mount, name=name) for name, kind in KINDS.items()]
    broken = [
        f"{name}: {why(result) or 'PASSED'}"
        for name, result in judged(client, jobs)
        if isinstance(result, Fault) or any(outcome.passed for outcome in result.outcomes)
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("group", GROUPS)
def test_a_trick_neither_passes_nor_faults(client: ExecutionClient, group: str) -> None:
    standing = [(kind, group, trick) for kind in STANDING[group] for trick in GROUPS[group]]
    turning = [cell for cell in turns(CORE, 1) if cell[1] == group]
    cells = dict.fromkeys([*standing, *turning])
    hold_the_line(client, [cell for cell in cells if cell[2] not in HEAVY])


def test_what_does_not_end_is_a_verdict(client: ExecutionClient) -> None:
    kinds = itertools.cycle(("unittest", "iterated", "callback"))
    cells = [(kind, "endless", trick) for trick, kind in zip(ENDLESS, kinds, strict=False)]
    hold_the_line(client, cells, SHORT)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "kind", ["unittest", "iterated", "callback", "eval answer", "pattern answer", "calls", "stdio"]
)
def test_what_does_not_end_is_a_verdict_in_more_kinds(client: ExecutionClient, kind: str) -> None:
    hold_the_line(client, [(kind, "endless", trick) for trick in ENDLESS], SHORT)


@pytest.mark.parametrize("kind", ["asserts", "calls", "helper"])
@pytest.mark.parametrize(
    "trick",
    [
        pytest.param(trick, marks=() if trick.startswith("Fraction") else pytest.mark.exhaustive)
        for trick in COSTLY
    ],
)
def test_what_costs_the_judge_much_is_a_verdict(
    client: ExecutionClient, kind: str, trick: str
) -> None:
    began_s = time.monotonic()
    hold_the_line(client, [(kind, "costly", trick)], AMPLE)
    assert time.monotonic() - began_s < LONGEST_S


@pytest.mark.exhaustive
@pytest.mark.parametrize("group", GROUPS)
def test_a_trick_neither_passes_nor_faults_in_more_kinds(
    client: ExecutionClient, group: str
) -> None:
    hold_the_line(client, [cell for cell in turns(tuple(KINDS), 4) if cell[1] == group])


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_no_trick_passes_or_faults_in_any_kind(client: ExecutionClient, kind: str) -> None:
    cells = [(kind, group, trick) for group, tricks in GROUPS.items() for trick in tricks]
    hold_the_line(client, cells)


def test_the_tables_are_whole() -> None:
    assert set(STANDING) == set(GROUPS)
    assert {kind for kinds in STANDING.values() for kind in kinds} <= set(KINDS)
    assert {kind for kind, _ in TRUSTED} <= set(KINDS)
    assert all(kind.rights for kind in KINDS.values())
