"""`code`: reports become judgements, faults stay faults, and items of a call travel together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from assay.api.common.v1 import common_pb2
from assay.api.execution.v1 import execution_pb2
from assay.api.reward.v1 import reward_pb2
from assay.clients.execution import (
    AsyncExecutionClient,
    CallTest,
    Execution,
    StdioTest,
    TestOutcome,
    TestReport,
    TestSuite,
    suite_to_proto,
)
from assay.clients.testing import ScriptedTransport
from assay.kit.errors import StartupError, make_status, refuse
from assay.kit.reasons import Reason
from assay.reward_server.config import ScorerConfig
from assay.reward_server.domain import Candidate, Judgement, VerifierItem
from assay.reward_server.registry import load_registry
from assay.reward_server.scorer import RewardScorer
from assay.reward_server.verifiers.code import CodeVerifier, judge_report

SUITE = suite_to_proto(TestSuite([StdioTest(b"1", b"1"), StdioTest(b"2", b"2")]))
CALLS = suite_to_proto(TestSuite([CallTest("f", [1], 1), CallTest("f", [2], 2)]))
PROGRAM = "```python\nprint(input())\n```"


class FakeSandbox(ScriptedTransport):
    """A sandbox without its network: a program passes a test when its source says so."""

    def __init__(self) -> None:
        self.requests: list[execution_pb2.RunTestsRequest] = []
        self.fails = False
        self.closed = False
        self.item_bytes = 0
        self.answer: Callable[[execution_pb2.TestJob], execution_pb2.TestJobResult] = passes

    async def run_tests(
        self, request: execution_pb2.RunTestsRequest, *, timeout_s: float
    ) -> execution_pb2.RunTestsResponse:
        assert timeout_s > 0
        if self.fails:
            raise refuse(Reason.INTERNAL, "the fake is told to fail")
        self.requests.append(request)
        return execution_pb2.RunTestsResponse(results=[self.answer(job) for job in request.jobs])

    async def list_languages(
        self, request: execution_pb2.ListLanguagesRequest, *, timeout_s: float
    ) -> execution_pb2.ListLanguagesResponse:
        response = execution_pb2.ListLanguagesResponse()
        response.limits.max_item_bytes = self.item_bytes
        return response

    async def execute(
        self, request: execution_pb2.ExecuteRequest, *, timeout_s: float
    ) -> execution_pb2.ExecuteResponse:
        raise AssertionError("nobody executes here")

    def stream_run_tests(
        self, requests: AsyncIterator[execution_pb2.StreamRunTestsRequest], *, timeout_s: float
    ) -> AsyncIterator[execution_pb2.StreamRunTestsResponse]:
        raise AssertionError("nobody streams here")

    async def close(self) -> None:
        self.closed = True


def passes(job: execution_pb2.TestJob) -> execution_pb2.TestJobResult:
    """All tests pass but for a program that adds nothing, where one is expected."""
    result = execution_pb2.TestJobResult(id=job.id)
    result.timings.queue.nanos = 5_000_000
    result.timings.execution.nanos = 7_000_000
    for number, test in enumerate(job.suite.tests, start=1):
        adds = "+ 1" in job.program.source
        right = adds or test.stdio.stdin.strip() == test.stdio.expected_stdout.strip()
        result.report.outcomes.add(
            name=str(number),
            verdict=execution_pb2.TEST_VERDICT_PASSED
            if right
            else execution_pb2.TEST_VERDICT_WRONG_ANSWER,
        )
    return result


def item(item_id: str, response: str = PROGRAM, **parameters: str) -> reward_pb2.Item:
    message = reward_pb2.Item(id=item_id, task="code", response=response)
    message.reference.tests.CopyFrom(SUITE)
    for name, value in parameters.items():
        message.parameters[name].CopyFrom(common_pb2.ParameterValue(string_value=value))
    return message


@pytest.fixture
async def sandbox() -> FakeSandbox:
    return FakeSandbox()


@pytest.fixture
async def scorer(sandbox: FakeSandbox) -> AsyncIterator[RewardScorer]:
    verifier = CodeVerifier(AsyncExecutionClient(transport=sandbox))
    scorer = RewardScorer(ScorerConfig(workers=1), registry=load_registry([verifier]))
    await scorer.start()
    sandbox.requests.clear()
    yield scorer
    await scorer.close()
    assert sandbox.closed


async def score(scorer: RewardScorer, *items: reward_pb2.Item) -> list[reward_pb2.Result]:
    request = reward_pb2.BatchScoreRequest(items=items)
    return list((await scorer.batch_score(request, timeout_s=20.0)).results)


def reason(result: reward_pb2.Result) -> str:
    from assay.kit.errors import reason_of

    assert result.WhichOneof("outcome") == "fault", result
    return reason_of(result.fault)


async def test_items_of_a_call_travel_in_one_request(
    scorer: RewardScorer, sandbox: FakeSandbox
) -> None:
    exact = reward_pb2.Item(id="exact", verifier="exact", response="4")
    exact.reference.text = "4"
    results = await score(
        scorer, item("a"), exact, item("b", "no program"), item("c"), item("d", language="go")
    )
    assert [result.id for result in results] == ["a", "exact", "b", "c", "d"]
    assert [result.judgement.verdict for result in results] == [
        "correct", "correct", "unparsed", "correct", "correct"
    ]  # fmt: skip
    [request] = sandbox.requests
    assert [job.program.language for job in request.jobs] == ["python", "python", "go"]
    assert results[0].timings.queue.nanos >= 5_000_000
    assert results[0].timings.execution.nanos == 7_000_000


async def test_tests_after_a_failure_matter_for_the_fraction_only(
    scorer: RewardScorer, sandbox: FakeSandbox
) -> None:
    await score(scorer, item("a"), item("b", scoring="fraction"))
    [request] = sandbox.requests
    assert [job.suite.stop_at_first_failure for job in request.jobs] == [True, False]


async def test_a_fault_of_the_sandbox_is_the_items_with_its_own_reason(
    scorer: RewardScorer, sandbox: FakeSandbox
) -> None:
    def broken(job: execution_pb2.TestJob) -> execution_pb2.TestJobResult:
        result = passes(job)
        if job.program.language == "cobol":
            fault = make_status("UNKNOWN_LANGUAGE", "no", metadata={"language": "cobol"})
            result.fault.CopyFrom(fault)
        return result

    sandbox.answer = broken
    good, bad = await score(scorer, item("a"), item("b", language="cobol"))
    assert good.judgement.reward == 1.0
    assert reason(bad) == "UNKNOWN_LANGUAGE"


async def outcomes(sandbox: FakeSandbox, *sources: str, scoring: str = "all") -> list[str]:
    """The verdict or the reason of each program, where the sandbox says its limits at once."""
    verifier = CodeVerifier(AsyncExecutionClient(transport=sandbox))
    parameters = verifier.spec.complete({"scoring": scoring})
    items = [
        VerifierItem(Candidate(f"```python\n{source}\n```"), tests=SUITE, parameters=parameters)
        for source in sources
    ]
    found = [answer.outcome for answer in await verifier.judge_all(items, 5.0)]
    await verifier.close()
    return [one.verdict if isinstance(one, Judgement) else one.reason for one in found]


@pytest.mark.parametrize("scoring", ["all", "fraction"])
async def test_a_program_that_is_too_long_is_incorrect_and_tests_that_are_a_fault(
    sandbox: FakeSandbox, scoring: str
) -> None:
    sources = ("print(input())", "#" + "x" * 100)
    sandbox.item_bytes = SUITE.ByteSize() + 60
    assert await outcomes(sandbox, *sources, scoring=scoring) == ["correct", "incorrect"]
    sandbox.item_bytes = SUITE.ByteSize()
    assert await outcomes(sandbox, *sources, scoring=scoring) == ["ITEM_TOO_LARGE"] * 2


async def test_a_program_that_is_no_unicode_is_incorrect(sandbox: FakeSandbox) -> None:
    sources = ("print('\ud800')", "print(input())", "print('\0')")
    assert await outcomes(sandbox, *sources) == ["incorrect", "correct", "correct"]


async def test_a_sandbox_that_fails_is_a_fault_of_its_items_only(
    scorer: RewardScorer, sandbox: FakeSandbox
) -> None:
    sandbox.fails = True
    exact = reward_pb2.Item(id="exact", verifier="exact", response="4")
    exact.reference.text = "4"
    first, other, unparsed = await score(scorer, item("a"), exact, item("b", "nothing here"))
    assert reason(first) == "INTERNAL"
    assert other.judgement.reward == 1.0
    assert unparsed.judgement.verdict == "unparsed"


async def test_answers_that_lose_tests_are_no_judgement(
    scorer: RewardScorer, sandbox: FakeSandbox
) -> None:
    def short(job: execution_pb2.TestJob) -> execution_pb2.TestJobResult:
        result = passes(job)
        del result.report.outcomes[1:]
        return result

    sandbox.answer = short
    [result] = await score(scorer, item("a"))
    assert reason(result) == "MISSING_RESULT"


async def test_references_of_another_kind_are_faults(scorer: RewardScorer) -> None:
    text = reward_pb2.Item(id="text", task="code", response=PROGRAM)
    text.reference.text = "42"
    none = reward_pb2.Item(id="none", task="code", response=PROGRAM)
    empty = item("empty")
    empty.reference.tests.Clear()
    empty.reference.tests.SetInParent()
    mixed = item("mixed")
    mixed.verifier = "math"
    results = await score(scorer, text, none, empty, mixed, item("odd", scoring="half"))
    assert [reason(result) for result in results] == [
        "UNSUPPORTED_INPUT", "MISSING_REFERENCE", "UNUSABLE_REFERENCE", "UNSUPPORTED_INPUT",
        "INVALID_PARAMETER",
    ]  # fmt: skip


async def test_a_stream_judges_code_too(scorer: RewardScorer) -> None:
    async def chunks() -> AsyncIterator[reward_pb2.StreamScoreRequest]:
        for chunk in range(3):
            items = [item(f"{chunk}-{n}") for n in range(4)]
            yield reward_pb2.StreamScoreRequest(items=items)

    results = [
        result
        async for response in scorer.stream_score(chunks(), timeout_s=20.0)
        for result in response.results
    ]
    assert len(results) == 12
    assert {result.judgement.verdict for result in results} == {"correct"}


async def test_a_sandbox_that_judges_wrongly_keeps_the_server_from_starting() -> None:
    sandbox = FakeSandbox()

    def generous(job: execution_pb2.TestJob) -> execution_pb2.TestJobResult:
        result = passes(job)
        for outcome in result.report.outcomes:
            outcome.verdict = execution_pb2.TEST_VERDICT_PASSED
        return result

    sandbox.answer = generous
    verifier = CodeVerifier(AsyncExecutionClient(transport=sandbox))
    scorer = RewardScorer(ScorerConfig(workers=1), registry=load_registry([verifier]))
    with pytest.raises(StartupError, match="'code' fails its self-test"):
        await scorer.start()
    await scorer.close()


async def test_a_sandbox_that_is_not_there_yet_does_not_keep_it() -> None:
    sandbox = FakeSandbox()
    sandbox.fails = True
    verifier = CodeVerifier(AsyncExecutionClient(transport=sandbox))
    scorer = RewardScorer(ScorerConfig(workers=1), registry=load_registry([verifier]))
    await scorer.start()
    [fault] = await score(scorer, item("a"))
    assert reason(fault) == "INTERNAL"
    sandbox.fails = False
    [result] = await score(scorer, item("a"))
    assert result.judgement.reward == 1.0
    await scorer.close()


async def test_without_a_sandbox_the_fault_says_which_flag_is_missing() -> None:
    scorer = RewardScorer(ScorerConfig(workers=1))
    await scorer.start()
    [fault] = await score(scorer, item("a"))
    assert reason(fault) == "UNKNOWN_TASK"
    assert "--sandbox-target" in fault.fault.message
    await scorer.close()


def report(*verdicts: str, end: str = "exited", explanation: str = "") -> TestReport:
    outcomes = [
        TestOutcome(f"t{number}", verdict, Execution(end), explanation)
        for number, verdict in enumerate(verdicts, start=1)
    ]
    return TestReport(tuple(outcomes))


@pytest.mark.parametrize("count", [1, 3, 7, 49, 100, 1000])
@pytest.mark.parametrize("failed", [0, 1])
def test_the_reward_is_exact_whatever_the_number_of_tests(count: int, failed: int) -> None:
    verdicts = ["passed"] * (count - failed) + ["wrong-answer"] * failed
    fraction = judge_report(report(*verdicts), "x", "fraction")
    everything = judge_report(report(*verdicts), "x", "all")
    assert fraction.reward == (count - failed) / count
    assert everything.reward == float(not failed)
    for judgement in (fraction, everything):
        assert judgement.verdict == ("incorrect" if failed else "correct")
        assert judgement.reward == sum(c.weight * c.score for c in judgement.components)
        assert len(judgement.components) <= 101


def test_the_explanation_names_the_first_failure() -> None:
    judgement = judge_report(
        report("passed", "limit-exceeded", "not-run", end="wall-time-limit"), "x", "all"
    )
    assert judgement.explanation == (
        "passes 1 of 3 tests; first failure: test t2, limit-exceeded (wall-time-limit)"
    )
    assert [part.name for part in judgement.components] == ["all-passed", "test-1", "test-2"]


def test_a_violation_is_a_suspicion() -> None:
    judgement = judge_report(report("security-violation"), "x", "all")
    assert judgement.suspicions == ("security-violation",)
    assert judgement.reward == 0.0


@pytest.mark.parametrize(
    ("language", "suite", "expected"),
    [
        ("python", SUITE, ()),
        ("py", CALLS, ("early-exit",)),
        ("cpp", CALLS, ()),
    ],
)
async def test_a_suspicion_of_the_text_changes_no_verdict(
    language: str, suite: execution_pb2.TestSuite, expected: tuple[str, ...]
) -> None:
    text = "```\nimport sys\nprint(input())\nsys.exit()\n```"
    verifier = CodeVerifier(AsyncExecutionClient(transport=FakeSandbox()))
    parameters = verifier.spec.complete({"language": language})
    given = VerifierItem(Candidate(text), tests=suite, parameters=parameters)
    (outcome,) = await verifier.judge_all([given], 5)
    judgement = outcome.outcome
    assert isinstance(judgement, Judgement)
    assert (judgement.verdict, judgement.reward) == ("correct", 1.0)
    assert judgement.suspicions == expected


def test_a_program_that_does_not_compile_earns_nothing_and_says_why() -> None:
    from assay.clients.execution import Output

    failed = TestReport(
        (TestOutcome("1", "not-run"),), compile_output=Output(b"error: x"), compile_failed=True
    )
    judgement = judge_report(failed, "x", "fraction")
    assert judgement.reward == 0.0
    assert judgement.verdict == "incorrect"
    assert judgement.explanation == "the program does not compile: error: x"
