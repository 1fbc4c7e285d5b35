"""`code`: the response's program passes tests, in the sandbox.

The program is taken out of the response by `code_text`; the reference is a suite of tests, which
goes to the sandbox as it is, all items of a call together. What the sandbox could not run is the
item's fault, with the sandbox's own reason. A program that no sandbox could take is incorrect: one
that is too long for a job beside tests that are not, or that is no Unicode.

Not covered: an item's own time-out. The tests' limits bound the program's time, and the sandbox
keeps them; the time in the sandbox's queue counts against the call's deadline only.

Suspicions: of the sandbox, and of a Python program's text (code_suspicions.py).

Limits. A program is as right as the tests are strict: one that fits the tests alone passes. How
much time it needs within the limits does not count. What the sandbox's walls cover is in
docs/understand/threat-model.md, the languages are in docs/use/languages.md.

Measured: HumanEval and MBPP: every canonical solution passes (164 and 974), and mutants of them
(three and one a problem) fare as in direct execution of the tests, without a difference
(`tests/integration/test_sandbox_judging_data.py`; docs/understand/results/sandbox.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.api.execution.v1 import execution_pb2
from assay.clients.execution import AsyncExecutionClient, Program, TestJob, TestReport, TestResult
from assay.clients.execution.convert import test_job_to_proto
from assay.clients.types import Fault as ClientFault
from assay.kit.errors import CallError
from assay.kit.reasons import Reason
from assay.reward_server.domain import (
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Fault,
    Judgement,
    Outcome,
    ParameterSpec,
    RemoteOutcome,
    RemoteVerifier,
    Unjudgeable,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers import code_suspicions, code_text

_SHOWN_CHARS = 4000
_TESTS_SHOWN = 100
_MESSAGE_CHARS = 300
_PYTHON = ("python", "py", "python3")

_SPEC = VerifierSpec(
    name="code",
    version="1",
    description="The program in the response passes the reference's tests, run in the sandbox.",
    tasks=("code",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct", "incorrect", "unparsed"),
    parameters=(
        ParameterSpec(
            "language", "string", "python", "The program's language, as the sandbox names it."
        ),
        ParameterSpec(
            "scoring",
            "string",
            "all",
            "The reward: 1 where all tests pass, or the fraction of those that do.",
            allowed_values=("all", "fraction"),
        ),
        ParameterSpec(
            "extraction",
            "string",
            "last",
            "Which fenced block is the program; all joins them, whole takes the response itself.",
            allowed_values=code_text.CHOICES,
        ),
    ),
    # Programs may be random, and a busy machine may take one past its limit.
    deterministic=False,
    cacheable=False,
    isolation="remote",
    takes_tests=True,
)


class CodeVerifier(RemoteVerifier):
    """Tests programs in the sandbox.

    Args:
        client: reaches the sandbox; closed with the verifier.
    """

    def __init__(self, client: AsyncExecutionClient) -> None:
        self._client = client

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """One item for each verdict."""
        return (
            VerifierExample(_example("```python\nprint(int(input()) + 1)\n```"), "correct"),
            VerifierExample(_example("```python\nprint(input())\n```"), "incorrect"),
            VerifierExample(_example("It is a hard problem."), "unparsed"),
        )

    async def judge_all(
        self, items: Sequence[VerifierItem], timeout_s: float
    ) -> list[RemoteOutcome]:
        """Runs the programs of the items in one call; see `RemoteVerifier.judge_all`."""
        answers: list[RemoteOutcome | None] = [None] * len(items)
        jobs: list[TestJob] = []
        programs: dict[int, str] = {}
        for index, item in enumerate(items):
            try:
                job = _job(item, str(index))
            except Unjudgeable as trouble:
                answers[index] = RemoteOutcome(Fault(trouble.reason, trouble.message))
                continue
            if job is None:
                answers[index] = RemoteOutcome(_unparsed(str(item.parameters["scoring"])))
                continue
            if not _is_unicode(job.program.source):
                why = "the program holds a lone surrogate: it is no text"
                answers[index] = RemoteOutcome(_untaken(item, job.program.source, why))
                continue
            programs[index] = job.program.source
            jobs.append(job)
        results = await self._client.run_tests(jobs, timeout_s=timeout_s) if jobs else []
        for job, (index, program), result in zip(jobs, programs.items(), results, strict=True):
            if await self._is_too_long(job, result, timeout_s):
                why = "the program is too long for the sandbox"
                answers[index] = RemoteOutcome(_untaken(items[index], program, why))
            else:
                answers[index] = _answer(items[index], program, result)
        return [answer for answer in answers if answer is not None]

    async def _is_too_long(self, job: TestJob, result: TestResult, timeout_s: float) -> bool:
        """Whether a job was refused as too large that would fit without its program."""
        if not isinstance(result, ClientFault) or result.reason != Reason.ITEM_TOO_LARGE:
            return False
        bare = test_job_to_proto(TestJob(Program(job.program.language, ""), job.suite), job.id)
        try:
            info = await self._client.list_languages(timeout_s=timeout_s)
        except CallError:
            return False
        return bare.ByteSize() <= info.max_item_bytes

    async def close(self) -> None:
        """Closes the client."""
        await self._client.close()


def judge_report(
    report: TestReport, program: str, scoring: str, suspicions: Sequence[str] = ()
) -> Judgement:
    """The judgement of a tested program. Pure.

    Args:
        report: of the tests.
        program: its text.
        scoring: "all" or "fraction".
        suspicions: of the program's text.
    """
    count, passed = len(report.outcomes), report.passed_count
    score = float(report.all_passed) if scoring == "all" else passed / count
    # Those of single tests weigh nothing: they say where the reward comes from.
    single = tuple(
        Component(f"test-{number}", float(outcome.passed), 0.0)
        for number, outcome in enumerate(report.outcomes[:_TESTS_SHOWN], start=1)
        if outcome.verdict != "not-run"
    )
    violated = any(outcome.verdict == "security-violation" for outcome in report.outcomes)
    return Judgement.composed(
        "correct" if report.all_passed else "incorrect",
        (Component(_score_name(scoring), score), *single),
        extracted_answer=program[:_SHOWN_CHARS],
        explanation=_explanation(report, passed, count),
        suspicions=(*(("security-violation",) if violated else ()), *suspicions),
    )


def _score_name(scoring: str) -> str:
    return "all-passed" if scoring == "all" else "fraction-passed"


def _explanation(report: TestReport, passed: int, count: int) -> str:
    if report.compile_failed:
        words = report.compile_output.text.strip()[:_MESSAGE_CHARS]
        return f"the program does not compile: {words}"
    failure = report.first_failure
    if failure is None:
        return f"passes all {count} tests"
    text = f"passes {passed} of {count} tests; first failure: test {failure.name[:80]}"
    text += f", {failure.verdict}"
    if failure.execution is not None and failure.execution.end not in ("exited", "signalled"):
        text += f" ({failure.execution.end})"
    return f"{text}: {failure.explanation}" if failure.explanation else text


def _job(item: VerifierItem, job_id: str) -> TestJob | None:
    """The item's program and tests; None where the response holds no program.

    Raises:
        Unjudgeable: the reference holds no tests, or the response is a dialogue.
    """
    language = str(item.parameters["language"])
    if item.tests is None or not item.tests.tests:
        raise Unjudgeable(UNUSABLE_REFERENCE, "the reference holds no tests")
    program = code_text.extract_code(item.response(), language, str(item.parameters["extraction"]))
    if program is None:
        return None
    suite = item.tests
    if item.parameters["scoring"] == "all" and not suite.stop_at_first_failure:
        # What follows the first failure cannot change the reward.
        suite = execution_pb2.TestSuite()
        suite.CopyFrom(item.tests)
        suite.stop_at_first_failure = True
    return TestJob(Program(language, program), suite, id=job_id)


def _answer(item: VerifierItem, program: str, result: TestResult) -> RemoteOutcome:
    outcome: Outcome
    if isinstance(result, ClientFault):
        outcome = Fault(result.reason, result.message, dict(result.metadata))
        return RemoteOutcome(outcome)
    if item.tests is None or len(result.outcomes) != len(item.tests.tests):
        text = "the sandbox answered with another number of tests"
        return RemoteOutcome(Fault("MISSING_RESULT", text))
    suspicions: tuple[str, ...] = ()
    if str(item.parameters["language"]) in _PYTHON:
        calls = any(test.WhichOneof("kind") != "stdio" for test in item.tests.tests)
        suspicions = code_suspicions.suspicions_of(program, calls=calls)
    outcome = judge_report(result, program, str(item.parameters["scoring"]), suspicions)
    return RemoteOutcome(outcome, result.queue_s, result.service_s)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _untaken(item: VerifierItem, program: str, why: str) -> Judgement:
    """The judgement of a program that no sandbox takes."""
    shown = program[:_SHOWN_CHARS].encode("utf-8", "replace").decode()
    return Judgement.composed(
        "incorrect",
        (Component(_score_name(str(item.parameters["scoring"])), 0.0),),
        extracted_answer=shown,
        explanation=why,
    )


def _unparsed(scoring: str) -> Judgement:
    return Judgement.composed(
        "unparsed",
        (Component(_score_name(scoring), 0.0),),
        explanation="no program was found in the response",
    )


def _example(response: str) -> VerifierItem:
    test = execution_pb2.StdioTest(stdin=b"41\n", expected_stdout=b"42\n")
    suite = execution_pb2.TestSuite(tests=[execution_pb2.TestCase(stdio=test)])
    return VerifierItem(Candidate(response), tests=suite, parameters=_SPEC.complete({}))
