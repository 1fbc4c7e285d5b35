"""A fault is a confession about ourselves: no program whatever can bring one about.

Random programs against random suites of every kind, through the real service. A fault appears only
where the suite was broken on purpose; and a suite that is broken is never passed.
"""

# ruff: noqa: E501 - programs in tables

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from assay.clients import EmbeddedServices
from assay.clients.execution import (
    AssertTest,
    Comparison,
    ExecutionClient,
    Fault,
    Limits,
    Program,
    StdioTest,
    TestJob,
    TestReport,
    TestSuite,
)
from forgeries import KINDS, TRUSTED, Kind

# An example is a batch of programs, small enough to be read as they are: nothing is shrunk.
LAW: Final = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=(Phase.explicit, Phase.generate),
)
LIMITS: Final = Limits(wall_time_s=1.0)
WHOLE: Final = tuple(name for name in KINDS if name not in {kind for kind, _ in TRUSTED})

# Broken by themselves, whatever is held against them.
_CHECKERS: Final = ("raise SystemExit(7)\n", "1 / 0\n", "import nothing_of_that_name\n", "def (:\n")
BROKEN: Final[dict[str, Kind]] = {
    "no Python": Kind((AssertTest("assert f(1 == 2"),)),
    "an unknown import": Kind((AssertTest("import nothing_of_that_name\nassert f(1, 2) == 3"),)),
    "an unknown fixture": Kind((AssertTest("def test_it(tmp_path):\n    assert f(1, 2) == 3"),)),
    "it exits": Kind((AssertTest("import os\nassert f(1, 2) == 3\nos._exit(0)"),)),
    "it never uses the program": Kind((AssertTest("def test_it():\n    assert 1 == 1", "f"),)),
    **{
        f"checker {number}": Kind(
            (
                StdioTest(
                    b"1 2\n",
                    b"3\n",
                    comparison=Comparison("checker", checker=Program("python", checker)),
                ),
            ),
            mount="print(trick(1, 2))\n",
        )
        for number, checker in enumerate(_CHECKERS)
    },
}
RIGHT: Final = "def trick(a, b):\n    return a + b\n"


@pytest.fixture(scope="module")
def client() -> Iterator[ExecutionClient]:
    flags = ("--slots", "2", "--languages", "python", "--log-level", "ERROR")
    with (
        EmbeddedServices(("sandbox",), arguments={"sandbox": flags}) as services,
        ExecutionClient(services.address_of("sandbox"), timeout_s=100.0) as client,
    ):
        yield client


def _classes(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An object of a class whose methods return these."""
    names = st.sampled_from(
        ["__eq__", "__bool__", "__len__", "__iter__", "__getattr__", "__hash__", "__str__", "__repr__",
         "__lt__", "__sub__", "__float__", "__index__", "__call__", "__next__", "__class__", "__format__"]
    )  # fmt: skip
    bases = st.sampled_from(["object", "int", "str", "list", "dict", "Exception", "float", "tuple"])

    def made(base: str, methods: dict[str, str]) -> str:
        members = ", ".join(f"{name!r}: lambda *a, **k: {text}" for name, text in methods.items())
        return f"type('X', ({base},), {{{members}}})()"

    return st.builds(made, bases, st.dictionaries(names, inner, max_size=4))


LEAVES: Final = st.one_of(
    st.integers().map(repr),
    st.integers(min_value=4_000, max_value=6_000).map(lambda n: f"10 ** {n}"),
    st.floats().map(lambda x: f"float({str(x)!r})"),
    st.text(max_size=20).map(ascii),
    st.binary(max_size=8).map(repr),
    st.sampled_from(
        ["None", "True", "...", "NotImplemented", "print", "type", "object()", "trick", "ValueError",
         "a", "k", "a[0] if a else 1", "iter(a)", "__import__('os')", "range(10 ** 5000)", "open('/dev/null')",
         "__import__('fractions').Fraction(10 ** 5000, 7)", "__import__('decimal').Decimal('sNaN')",
         "__import__('datetime').datetime.max", "__import__('collections').deque([10 ** 5000])",
         "(x for x in a)", "memoryview(b'1')", "__import__('sys')._getframe()", "lambda *a: 1 / 0"]
    ),
)  # fmt: skip
EXPRESSIONS: Final = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.lists(inner, max_size=3).map(lambda parts: f"({', '.join([*parts, ''])})" if parts else "()"),
        st.tuples(st.integers(), inner).map(lambda pair: f"{{{pair[0]}: {pair[1]}}}"),
        _classes(inner),
    ),
    max_leaves=5,
)  # fmt: skip
ERRORS: Final = st.sampled_from(
    ["AssertionError", "SystemExit", "KeyboardInterrupt", "StopIteration", "GeneratorExit", "ValueError",
     "MemoryError", "NameError", "ImportError", "BaseException", "RecursionError", "TypeError",
     "__import__('unittest').SkipTest", "type('Skipped', (BaseException,), {})"]
)  # fmt: skip
STATEMENTS: Final = st.one_of(
    EXPRESSIONS.map(lambda text: f"return {text}"),
    EXPRESSIONS.map(lambda text: f"yield {text}"),
    st.builds(lambda kind, text: f"raise {kind}({text})", ERRORS, EXPRESSIONS),
    EXPRESSIONS.map(lambda text: f"print({text})"),
    EXPRESSIONS.map(lambda text: f"a[0]({text})"),
    EXPRESSIONS.map(lambda text: f"a[0].x = {text}"),
    EXPRESSIONS.map(lambda text: f"a[0][:] = [{text}]"),
    st.integers(0, 255).map(lambda code: f"__import__('os')._exit({code})"),
    st.integers(1, 15).map(lambda n: f"__import__('os').kill(__import__('os').getpid(), {n})"),
    st.sampled_from(
        ["__import__('os').close(3)", "__import__('os').fork()", "__import__('os').write(3, b'\\0\\0\\0\\1A')",
         "__import__('gc').get_objects().clear()", "globals().clear()", "__import__('sys').stdout.close()"]
    ),
)  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A program that defines `trick`, or something else of that name."""
    if draw(st.integers(0, 9)) == 0:
        return f"a, k = (), {{}}\ntrick = 1\ntrick = {draw(EXPRESSIONS)}\n"
    lines = "".join(f"    {line}\n" for line in draw(st.lists(STATEMENTS, min_size=1, max_size=4)))
    first = draw(STATEMENTS) if draw(st.integers(0, 9)) == 0 else "pass"
    if first.startswith(("return", "yield")):
        first = "pass"
    shadow = draw(st.sampled_from(["", "", "abs = len = 1\n", "unittest = math = np = print\n"]))
    return f"a, k = (), {{}}\n{shadow}def trick(*a, **k):\n{lines}{first}\n"


@settings(LAW, max_examples=40)
@given(st.lists(st.tuples(programs(), st.sampled_from(WHOLE)), min_size=8, max_size=8))
def test_no_program_makes_a_fault_of_a_whole_suite(
    client: ExecutionClient, cells: list[tuple[str, str]]
) -> None:
    jobs = [KINDS[kind].job(f"{source}\n{KINDS[kind].mount}", LIMITS) for source, kind in cells]
    broken = [
        (*cell, result.reason if isinstance(result, Fault) else "passed")
        for cell, result in zip(cells, client.run_tests(jobs), strict=True)
        if isinstance(result, Fault) or result.all_passed
    ]
    assert broken == []


@pytest.mark.slow
@settings(LAW, max_examples=15)
@given(st.lists(st.tuples(programs(), st.sampled_from(sorted(BROKEN))), min_size=4, max_size=4))
def test_no_program_passes_a_broken_suite(
    client: ExecutionClient, cells: list[tuple[str, str]]
) -> None:
    jobs = [BROKEN[kind].job(f"{source}\n{BROKEN[kind].mount}", LIMITS) for source, kind in cells]
    passed = [
        cell
        for cell, result in zip(cells, client.run_tests(jobs), strict=True)
        if isinstance(result, TestReport) and result.all_passed
    ]
    assert passed == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_suite_is_a_fault_for_a_right_program(client: ExecutionClient, name: str) -> None:
    tests, mount = BROKEN[name].tests, BROKEN[name].mount
    job = TestJob(Program("python", f"{RIGHT}{mount}"), TestSuite(tuple(tests)))
    [result] = client.run_tests([job])
    assert isinstance(result, Fault), result
    assert result.reason == "INVALID_TEST"
