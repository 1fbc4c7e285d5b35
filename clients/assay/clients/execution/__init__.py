"""The client of a sandbox: run untrusted programs, and hold them against tests.

from assay.clients.execution import ExecutionClient, ExecutionJob, Program

with ExecutionClient("127.0.0.1:50052") as client:
    [result] = client.execute([ExecutionJob(Program("python", "print(6 * 7)"))])
print(result)
"""

from assay.clients.execution.client import AsyncExecutionClient, ExecutionClient
from assay.clients.execution.convert import suite_to_proto
from assay.clients.execution.types import (
    AssertTest,
    CallTest,
    Comparison,
    Execution,
    ExecutionJob,
    ExecutionResult,
    LanguageInfo,
    Limits,
    Output,
    Program,
    SandboxInfo,
    SourceFile,
    StdioTest,
    TestCase,
    TestJob,
    TestOutcome,
    TestReport,
    TestResult,
    TestSuite,
)
from assay.clients.types import Fault

__all__ = [
    "AssertTest",
    "AsyncExecutionClient",
    "CallTest",
    "Comparison",
    "Execution",
    "ExecutionClient",
    "ExecutionJob",
    "ExecutionResult",
    "Fault",
    "LanguageInfo",
    "Limits",
    "Output",
    "Program",
    "SandboxInfo",
    "SourceFile",
    "StdioTest",
    "TestCase",
    "TestJob",
    "TestOutcome",
    "TestReport",
    "TestResult",
    "TestSuite",
    "suite_to_proto",
]
