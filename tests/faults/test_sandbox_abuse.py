"""Hostile programs against a real service, over the wire: none passes, none escapes, nothing
stays behind.

Data-driven over tests/abuse/manifest.json and, where it is present,
../shared/abuse/manifest.json. Beside each hostile program run honest ones in the same call; they
must pass whatever their neighbour does, and one more must pass right afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.sandbox_census import Census, at_rest, settle, tree

from abuse import canaries, corpus
from assay.clients import EmbeddedServices
from assay.clients.execution import (
    AssertTest,
    CallTest,
    ExecutionClient,
    Fault,
    Limits,
    Program,
    StdioTest,
    TestJob,
    TestReport,
    TestSuite,
)

pytestmark = pytest.mark.timeout(1200)  # the canaries are planted by one file at a time
SLOTS = 2
HONEST = "a, b = map(int, input().split())\nprint(a + b)\n\n\ndef add(a, b):\n    return a + b\n"
PROGRAMS = [*corpus.load(corpus.OURS), *corpus.load(corpus.SHARED)]
# The compiler's clock is part of what is attacked; the default is for honest programs.
COMPILE_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """A service with canaries around it, at rest when `census` was taken."""

    client: ExecutionClient
    canaries: canaries.Canaries
    languages: frozenset[str]
    pid: int
    census: Census


def honest(name: str) -> TestJob:
    """A correct program: one stdin test and one call."""
    tests = (StdioTest(corpus.STDIN, b"5\n"),)
    return TestJob(
        Program("python", HONEST), TestSuite(tests, Limits(wall_time_s=30.0)), id=f"honest-{name}"
    )


def honest_call(name: str) -> TestJob:
    program = Program("python", HONEST.partition("\n\n\n")[2])
    tests = (CallTest("add", (2, 3), 5), CallTest("add", (-7, 7), 0))
    return TestJob(program, TestSuite(tests, Limits(wall_time_s=30.0)), id=f"honest-call-{name}")


def honest_with_numpy(name: str) -> TestJob:
    """Keeps a slot busy for so long that every slot gets one: a box is built at its first run."""
    source = (
        "import time\nimport numpy\n\n\ndef add(a, b):\n    time.sleep(0.2)\n    return a + b\n"
    )
    tests = (CallTest("add", (2, 3), 5),)
    return TestJob(Program("python", source), TestSuite(tests), id=f"honest-numpy-{name}")


def honest_under_test(name: str) -> TestJob:
    """Needs the tester's box: no plan is made of code with a class."""
    code = (
        "import unittest\n\nclass TestAdd(unittest.TestCase):\n"
        "    def test(self):\n        self.assertEqual(add(2, 3), 5)\n"
    )
    source = "import time\n\ndef add(a, b):\n    time.sleep(0.2)\n    return a + b\n"
    tests = (AssertTest(code),)
    return TestJob(Program("python", source), TestSuite(tests), id=f"honest-tested-{name}")


def assert_honest(result: TestReport | Fault) -> None:
    assert isinstance(result, TestReport), f"an honest program met a fault: {result}"
    assert result.all_passed, f"an honest program failed: {result.first_failure}"


def warm_up(client: ExecutionClient, pid: int) -> None:
    """Runs honest programs until every box of every slot is built: each is, at its first run."""
    # A slot: its supervisor, and three boxes, each a zygote and the child that waits for a job.
    whole = 1 + SLOTS * (1 + 3 * 2)
    for _ in range(20):
        for make in (honest, honest_call, honest_with_numpy, honest_under_test):
            for result in client.run_tests([make(str(i)) for i in range(4 * SLOTS)]):
                assert_honest(result)
        if len(tree(pid)) >= whole:
            return
    pytest.fail(f"{len(tree(pid))} processes instead of {whole}: is a box missing?")


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with (
        canaries.planted() as planted,
        EmbeddedServices(
            ("sandbox",),
            arguments={"sandbox": ("--slots", str(SLOTS), "--no-sessions", "--log-level", "ERROR")},
        ) as services,
        ExecutionClient(services.address_of("sandbox"), timeout_s=110.0) as client,
    ):
        info = client.list_languages()
        assert "pid-namespace" in info.isolation_layers, info.isolation_layers
        pid = services.pid("sandbox")
        warm_up(client, pid)
        yield Target(
            client,
            planted,
            frozenset(language.name for language in info.languages),
            pid,
            at_rest(pid),
        )


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(item, id=item.name, marks=[pytest.mark.slow] if item.slow else [])
        for item in PROGRAMS
    ],
)
def test_a_hostile_program_gains_nothing(target: Target, hostile: corpus.Hostile) -> None:
    if hostile.language not in target.languages:
        pytest.skip(f"{hostile.language} is not installed here")
    jobs = [TestJob(job.program, _hurried(job.suite), id=job.id) for job in hostile.jobs()]
    neighbours = [honest("beside-1"), honest_call("beside-2")]
    results = target.client.run_tests([*jobs, *neighbours])
    for job, result in zip(jobs, results, strict=False):
        assert isinstance(result, TestReport), f"{job.id}: a fault instead of a verdict: {result}"
        words = corpus.words_of(result)
        assert "passed" not in words, f"{job.id}: the judge was fooled"
        assert corpus.forbidden(hostile, result, (canaries.VALUE,)) == [], job.id
        seen = [
            (o.verdict, o.execution and o.execution.end, o.explanation) for o in result.outcomes
        ]
        # A busy machine may take longer than the program is given, by the clock and no otherwise.
        late = {end for _, end, _ in seen} == {"wall-time-limit"}
        sensible = words & hostile.status_in or (late and words == {"time_limit"})
        assert sensible, f"{job.id}: {sorted(words)} is not sensible: {seen}"
        assert all(len(outcome.explanation) <= 400 for outcome in result.outcomes)
    for neighbour in results[len(jobs) :]:
        assert_honest(neighbour)
    [after] = target.client.run_tests([honest("after")])
    assert_honest(after)
    assert target.canaries.visitors() == []
    assert settle(target.pid, target.census) == []


def test_every_door_of_the_sql_shell_is_shut(target: Target) -> None:
    """The shell stops at the first error; here each line of the program is one of its own."""
    if "sql" not in target.languages:
        pytest.skip("sql is not installed here")
    [hostile] = [item for item in PROGRAMS if item.id == "sql_shell_doors"]
    suite = TestSuite((StdioTest(b"", b"never to be seen\n"),))
    lines = hostile.content.decode().splitlines()
    jobs = [TestJob(Program("sql", f"{line}\nSELECT 'went on';\n"), suite) for line in lines]
    for line, result in zip(lines, target.client.run_tests(jobs), strict=True):
        assert isinstance(result, TestReport), (line, result)
        assert not result.all_passed
        assert corpus.forbidden(hostile, result) == [], line
    assert settle(target.pid, target.census) == []


def _hurried(suite: TestSuite) -> TestSuite:
    limits = Limits(wall_time_s=suite.limits.wall_time_s, compile_wall_time_s=COMPILE_LIMIT_S)
    return TestSuite(suite.tests, limits)


def test_our_own_corpus_is_whole() -> None:
    ours = corpus.load(corpus.OURS)
    listed = {item.path for item in ours}
    assert len({item.id for item in ours}) == len(ours) >= 40
    lying = {path for path in (corpus.OURS / "programs").iterdir() if path.is_file()}
    assert listed == lying
    assert not {item.id for item in ours} & {item.id for item in corpus.load(corpus.SHARED)}
    assert all(item.forbid_output and item.status_in for item in ours)


def test_a_forbidden_text_would_be_seen() -> None:
    """The detectors themselves can fail: a program that does print the sign is found out."""
    item = next(item for item in PROGRAMS if item.id == "raised_limits")
    from assay.clients.execution import Execution, Output, TestOutcome

    def report(text: bytes) -> TestReport:
        run = Execution("exited", stdout=Output(text))
        return TestReport((TestOutcome("1", "wrong-answer", run),))

    assert corpus.forbidden(item, report(b"ESCAPED raised RLIMIT_CPU\n"))
    assert corpus.forbidden(item, report(b"fine\n"), (canaries.VALUE,)) == []
    assert corpus.forbidden(item, report(canaries.VALUE.encode()), (canaries.VALUE,))
    quoted = b'    print("ESCAPED raised", name, hard, "to", wanted)\n'
    assert corpus.forbidden(item, report(quoted)) == []


def test_the_canaries_notice_a_visitor(tmp_path: Path) -> None:
    import socket

    with canaries.planted(tmp_path, "sbx_canary_tested") as planted:
        assert planted.visitors() == []
        for address in ("\0sbx_canary_tested", str(tmp_path / "sbx_canary.sock")):
            with socket.socket(socket.AF_UNIX) as visitor:
                visitor.connect(address)
                assert len(planted.visitors()) == 1
