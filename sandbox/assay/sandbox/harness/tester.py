"""Runs in the tester's process: executes test code against a candidate that lives in another one.

Served: bare statements, HumanEval's `def check(candidate)`, `unittest.TestCase` classes, pytest's
`test_` functions and `Test` classes (`pytest` itself is a small stand-in).
The candidate's names are there as the test code uses them, and importable from its file's module or
from `solution`. A built-in name means the built-in, unless it is the entry point or the only thing
that the test code calls.

The end is told over the channel, with the number that the warden gave for it: a tester that ends
without telling so has not passed.

Covered: the candidate shares no interpreter with the tests and sees of them only arguments.
Not covered: test code that hands expected values to the candidate itself, or that relies on helpers
which the candidate's own program defines: it then trusts the candidate.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import unittest
from collections.abc import Sequence
from typing import Any, Final

from assay.sandbox.harness import pytest_stand_in
from assay.sandbox.harness.codec import decode, encode
from assay.sandbox.harness.frames import BEGIN, DONE, HELLO, Channel
from assay.sandbox.harness.names import called_at_top, subject_names
from assay.sandbox.harness.peer import CandidateEndedError, Peer, Unsupported

MODULE: Final = "assay_tests"
LIBRARIES: Final = frozenset({*sys.stdlib_module_names, "numpy"})
_PLAIN: Final = frozenset({bool, int, float, str, bytes, list, tuple, dict, set, frozenset})
ALIASES: Final = {"np": "numpy"}


def main(channel_fd: int, argv: tuple[str, ...]) -> int:
    """Waits for the test code, runs it, and tells what came of it; returns the exit code."""
    channel = Channel(channel_fd)
    channel.send(HELLO, b"")
    kind, content = channel.receive()
    if kind != BEGIN:
        return 1
    begin: Any = decode(content)
    nonce, code, entry_point, stem = begin
    outcome, text = _Session(channel, code, entry_point, stem).run()
    channel.send(DONE, encode([nonce, outcome, text[:2000]]))
    return 0


class _Invalid(Exception):
    """The test code itself cannot be run."""


class _Session:
    """One run of some test code."""

    def __init__(self, channel: Channel, code: str, entry_point: str, stem: str) -> None:
        self._code = code
        self._entry_point = entry_point
        self._modules = {stem, "solution"} - {""}
        self._module = types.ModuleType(MODULE)
        self._peer = Peer(channel, self._is_open)
        self._wanted: frozenset[str] = frozenset()
        self._plain = False

    def run(self) -> tuple[str, str]:
        """What came of it: passed, wrong, error, memory or invalid, and why."""
        try:
            tree = self._parse()
            self._connect(tree)
            self._execute(tree)
        except _Invalid as error:
            return "invalid", str(error)
        except BaseException as error:  # noqa: BLE001 - the isolation border
            return self._judge(error)
        if not self._touched():
            return "invalid", "the test code never used the program"
        return "passed", ""

    def _touched(self) -> bool:
        """The test code called the program, or at least met plain values of it."""
        return self._peer.calls > 0 or self._plain

    def _parse(self) -> ast.Module:
        try:
            return ast.parse(self._code, "<tests>")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise _Invalid(f"the test code does not parse: {error}") from error

    def _is_open(self, subject: object) -> bool:
        return type(subject).__module__ == MODULE

    def _connect(self, tree: ast.Module) -> None:
        """Has the program loaded, and its names put where the test code looks for them."""
        (public,) = self._peer.ask("load")
        self._wanted = subject_names(tree, self._entry_point)
        namespace = self._module.__dict__
        for alias, library in ALIASES.items():
            if alias in self._wanted and alias != self._entry_point:
                self._take(alias, library, namespace)
        wanted = [name for name in sorted(self._wanted) if name not in namespace]
        for name, value, origin in self._peer.ask("lookup", wanted)[0]:
            namespace[name] = _library_value(origin, value)
            self._plain = self._plain or type(value) in _PLAIN
        for name in wanted:
            if name not in namespace and name in LIBRARIES and name != self._entry_point:
                self._take(name, name, namespace)
        names = [str(name) for name in public]
        sys.meta_path.insert(0, _Finder(self._peer, self._modules, names))
        sys.modules["pytest"] = pytest_stand_in.module()
        sys.modules[MODULE] = self._module

    def _take(self, name: str, library: str, namespace: dict[str, object]) -> None:
        try:
            namespace[name] = importlib.import_module(library)
        except ImportError:
            return

    def _execute(self, tree: ast.Module) -> None:
        namespace = self._module.__dict__
        unittest.main = _no_main  # type: ignore[assignment]
        code = compile(tree, "<tests>", "exec", dont_inherit=True)
        exec(code, namespace)  # noqa: S102 - this is its purpose
        check = namespace.get("check")
        if _is_own(check) and "check" not in called_at_top(tree):
            self._check(check)
        for name, value in list(namespace.items()):
            if isinstance(value, type) and value.__module__ == MODULE:
                if issubclass(value, unittest.TestCase):
                    _run_unittest(value)
                elif name.startswith("Test"):
                    _run_class(value)
            elif name.startswith("test") and _is_own(value) and name not in called_at_top(tree):
                pytest_stand_in.call(value)

    def _check(self, check: Any) -> None:
        if check.__code__.co_argcount == 0:
            check()
            return
        if not self._entry_point:
            raise _Invalid("check(candidate) needs the entry point's name")
        if self._entry_point not in self._module.__dict__:
            raise NameError(f"name {self._entry_point!r} is not defined", name=self._entry_point)
        check(self._module.__dict__[self._entry_point])

    def _judge(self, error: BaseException) -> tuple[str, str]:
        """Whose doing an exception is."""
        if isinstance(error, (Unsupported, pytest_stand_in.Unsupported)):
            return "invalid", _line(error)
        if isinstance(error, CandidateEndedError):
            return "error", str(error)
        return self._candidates(error) or self._tests(error)

    def _candidates(self, error: BaseException) -> tuple[str, str] | None:
        """What came of it where the candidate's program raised it, or lacks a name."""
        source: BaseException | None = error
        while source is not None:
            if any(source is raised for raised in self._peer.raised):
                memory = isinstance(source, MemoryError)
                return "memory" if memory else "error", f"the program raised {_line(source)}"
            source = source.__cause__
        if isinstance(error, NameError) and error.name in self._wanted:
            return "error", f"the program does not define {error.name!r}"
        if isinstance(error, ImportError) and error.name in self._modules:
            return "error", f"the program lacks a name: {error}"
        return None

    def _tests(self, error: BaseException) -> tuple[str, str]:
        """What came of it where the test code raised it."""
        text = _line(error)
        if isinstance(error, AssertionError):
            return "wrong", f"assertion failed{_where(error)}: {text}"
        broken = isinstance(error, (ImportError, NameError, SystemExit, SyntaxError))
        if broken or not self._touched():
            return "invalid", f"the test code raised {text}{_where(error)}"
        return "wrong", f"the test code could not use the answer: {text}{_where(error)}"


def _is_own(value: object) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__ == MODULE


def _line(error: BaseException) -> str:
    name, text = type(error).__name__, str(error).strip()
    first = text.splitlines()[0] if text else ""
    return f"{name}: {first}" if first else name


def _where(error: BaseException) -> str:
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<tests>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" in line {line} of the tests" if line else ""


def _no_main(*_: object, **__: object) -> None:
    """Stands for unittest.main: the cases are run once the code has been executed."""


class _Result(unittest.TestResult):
    """Raises what went wrong first."""

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802 - unittest's name
        raise err[1]

    addFailure = addError  # noqa: N815

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            raise err[1]

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        raise AssertionError(f"unexpected success of {test}")


def _run_unittest(case: type[unittest.TestCase]) -> None:
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(_Result())


def _run_class(case: type) -> None:
    """A class of tests as pytest takes them: a fresh instance for each method."""
    for name in [name for name in vars(case) if name.startswith("test")]:
        instance = case()
        for step in ("setup_method", name, "teardown_method"):
            method = getattr(instance, step, None)
            if method is not None:
                pytest_stand_in.call(method)


def _library_value(origin: Sequence[str] | None, value: object) -> object:
    """The tester's own object for one that the candidate took from a library."""
    if not origin or origin[0].split(".")[0] not in LIBRARIES:
        return value
    try:
        found: object = importlib.import_module(origin[0])
        for name in filter(None, origin[1].split(".")):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return value
    return found


class _Program(types.ModuleType):
    """The candidate's program as a module."""

    def __init__(self, name: str, peer: Peer, public: list[str]) -> None:
        super().__init__(name)
        self.__dict__["__all__"] = public
        self.__dict__["_peer"] = peer

    def __getattr__(self, name: str) -> object:
        found = self.__dict__["_peer"].ask("lookup", [name])[0]
        if not found:
            raise AttributeError(f"the program does not define {name!r}")
        value = _library_value(found[0][2], found[0][1])
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("__"):
            raise Unsupported("test code cannot replace names of the program")
        super().__setattr__(name, value)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the candidate's program under the names by which test files import it."""

    def __init__(self, peer: Peer, names: set[str], public: list[str]) -> None:
        self._peer = peer
        self._names = names
        self._public = public

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A module of the candidate's, or None."""
        if name not in self._names:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The program."""
        return _Program(spec.name, self._peer, self._public)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is left to do: it has been loaded in its own process."""
