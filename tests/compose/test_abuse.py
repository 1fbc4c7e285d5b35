"""Hostile programs against the sandbox in its container: none passes, none escapes, nothing stays
behind, and the service goes on.

The same programs as in tests/faults/test_sandbox_abuse.py, several at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from abuse import corpus
from assay.clients import Item, RewardClient
from assay.clients.execution import (
    AssertTest,
    ExecutionClient,
    Limits,
    Program,
    StdioTest,
    TestJob,
    TestReport,
    TestSuite,
    suite_to_proto,
)
from compose_support import CANARY, Stack, until

PROGRAMS = [*corpus.load(corpus.OURS), *corpus.load(corpus.SHARED)]
TOGETHER = 8
# The service; in each of two slots its supervisor and three boxes, each a zygote and the child that
# waits for a job, built at their first run; the listener below.
PROCESSES = 1 + 2 * (1 + 3 * 2) + 1
COMPILE_LIMIT_S = 10.0
HONEST = "a, b = map(int, input().split())\nprint(a + b)\n"
VISITED = "/tmp/sbx_canary_visited"
# Listens where the programs look; whoever comes is written down. It runs as the service's user.
LISTENER = f"""
import pathlib, selectors, socket
name, value = {CANARY!r}
pathlib.Path(f"/tmp/{{name}}_hidden_test.txt").write_text(value)
pathlib.Path(f"/tmp/{{name}}_hidden_test.txt").chmod(0o644)
selector = selectors.DefaultSelector()
for address in ("/tmp/sbx_canary.sock", "\\0sbx_canary_abstract"):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    selector.register(listener, selectors.EVENT_READ)
pathlib.Path("/tmp/sbx_canary.sock").chmod(0o777)
while True:
    for key, _ in selector.select():
        key.fileobj.accept()
        open({VISITED!r}, "a").write("visited\\n")
"""
FILES = """
import os
print(*sorted(os.path.join(folder, name) for top in ("/tmp", "/dev/shm", "/var/tmp")
              for folder, folders, files in os.walk(top) for name in (*folders, *files)), sep="\\n")
"""


@pytest.fixture(scope="module")
def canaries(stack: Stack) -> Iterator[Stack]:
    container = stack.container("sandbox")
    stack.docker("exec", "-d", container, "/opt/assay/bin/python", "-c", LISTENER)
    until(lambda: "sbx_canary.sock" in stack.python("sandbox", FILES), 30.0)
    yield stack
    # It ends with the container; started anew, so that other tests meet the service alone.
    stack.docker("restart", "-t", "10", container)
    stack.wait_healthy("sandbox")


def honest(name: str) -> TestJob:
    suite = TestSuite((StdioTest(corpus.STDIN, b"5\n"),), Limits(wall_time_s=60.0))
    return TestJob(Program("python", HONEST), suite, id=name)


def hurried(job: TestJob, patience: float) -> TestJob:
    wall_s = patience * (job.suite.limits.wall_time_s or 10.0)
    limits = Limits(wall_time_s=wall_s, compile_wall_time_s=COMPILE_LIMIT_S)
    return TestJob(job.program, TestSuite(job.suite.tests, limits), id=job.id)


def test_no_hostile_program_gains_anything(canaries: Stack, sandbox: ExecutionClient) -> None:
    served = {language.name for language in sandbox.list_languages().languages}
    programs = [item for item in PROGRAMS if item.language in served]
    for result in sandbox.run_tests([honest(str(n)) for n in range(16)]):
        assert isinstance(result, TestReport)
        assert result.all_passed
    files, before = stack_files(canaries), canaries.inspect("sandbox")["State"]
    bad: list[str] = []
    for first in range(0, len(programs), TOGETHER):
        bad += tried(sandbox, programs[first : first + TOGETHER])
    assert not bad, "\n".join(bad)
    # Whatever they left has gone; the service's own are no more than they should be.
    until(
        lambda: len(canaries.processes("sandbox")) <= PROCESSES,
        60.0,
        lambda: canaries.processes("sandbox"),
    )
    until(lambda: stack_files(canaries) <= files, 30.0, lambda: stack_files(canaries) - files)
    after = canaries.inspect("sandbox")["State"]
    assert (after["StartedAt"], after["OOMKilled"]) == (before["StartedAt"], False)
    assert after["Health"]["Status"] == "healthy"
    # Docker's own mounts of the secrets; the root is read-only.
    changed = canaries.docker("diff", canaries.container("sandbox")).splitlines()
    assert [line for line in changed if not line[2:].startswith("/run")] == []
    skipped = len(PROGRAMS) - len(programs)
    print(f"\n{len(programs)} hostile programs, {skipped} in languages that are not served")


def stack_files(stack: Stack) -> set[str]:
    return set(stack.python("sandbox", FILES).split())


def tried(
    sandbox: ExecutionClient, programs: list[corpus.Hostile], patience: float = 1.0
) -> list[str]:
    """What went wrong with hostile programs, run together with an honest one.

    A program that should come to its end, and that the clock of a busy machine ended before, is
    run once more by itself, with ten times the time; its CPU time stays bounded.
    """
    jobs = [(item, hurried(job, patience)) for item in programs for job in item.jobs()]
    *results, neighbour = sandbox.run_tests([*(job for _, job in jobs), honest("beside")])
    [after] = sandbox.run_tests([honest("after")])
    bad = [
        f"honest {which} {[item.id for item in programs]}: {result}"
        for which, result in (("beside", neighbour), ("after", after))
        if not (isinstance(result, TestReport) and result.all_passed)
    ]
    for (item, job), result in zip(jobs, results, strict=True):
        if not isinstance(result, TestReport):
            bad.append(f"{job.id}: a fault instead of a verdict: {result}")
            continue
        words = corpus.words_of(result)
        bad += [f"{job.id}: {text}" for text in corpus.forbidden(item, result, (CANARY[1],))]
        if "time_limit" in words and not words & item.status_in and patience == 1.0:
            bad += tried(sandbox, [item], 10.0)
        elif "passed" in words or not words & item.status_in:
            bad.append(f"{job.id}: {sorted(words)} instead of one of {sorted(item.status_in)}")
    return bad


def test_nobody_came_to_the_canaries(canaries: Stack, sandbox: ExecutionClient) -> None:
    hunters = [
        item
        for item in PROGRAMS
        if item.language == "python" and {"secret", "canar", "socket"} & set(item.id.split("_"))
    ]
    bad = tried(sandbox, hunters) if hunters else []
    assert bad == []
    assert VISITED not in stack_files(canaries)


def test_hostile_answers_earn_nothing_at_the_front_door(client: RewardClient) -> None:
    """As a policy under training would send them: in a response, for the verifier `code`."""
    items = []
    for item in PROGRAMS:
        try:
            text = item.content.decode()
        except UnicodeDecodeError:
            continue
        if item.language != "python" or item.mode != "function" or "\0" in text:
            continue
        suite = TestSuite(
            (AssertTest(item.tests, item.entry),), Limits(wall_time_s=item.wall_limit_s)
        )
        items.append(
            Item(
                text,
                reference=suite_to_proto(suite),
                task="code",
                parameters={"extraction": "whole"},
                id=item.name,
            )
        )
    assert len(items) >= 20
    results = client.score(items, timeout_s=300.0)
    assert {result.id: result.fault for result in results if result.fault} == {}
    assert {result.id: result.reward for result in results if result.reward != 0.0} == {}
