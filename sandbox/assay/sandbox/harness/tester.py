"""Runs in the tester's process: executes test code against a candidate in another process.

Served: bare statements, HumanEval's `def check(candidate)`, `unittest.TestCase` classes, pytest's
`test_` functions and `Test` classes (`pytest` itself is a small stand-in), `eval` and `exec` of the
program's texts (`texts`). The candidate's names are there as the test code uses them, and
importable from its file's module or from `solution`. Names of built-ins and of libraries mean
these, except the entry point and where the test code calls nothing else.

The end is reported over the channel, with the tag that the supervisor gave for it; a tester that
ends without that has not passed.

An exception is the program's fault where the program raised it, or the test code did, from the
first line on that has to do with the program. Earlier ones are the test code's, and so is what can
be read off it without running it (`_check`).

Covered: the candidate shares no interpreter with the tests, names nothing that is imported, built
or called here (`grants`), and sees of the tests only arguments.
Not covered: test code that hands expected values to the candidate itself, or that relies on helpers
of the candidate's own program.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import unittest
from typing import Any, Final

from assay.sandbox.harness import names, pytest_stand_in
from assay.sandbox.harness.codec import decode, encode
from assay.sandbox.harness.fixtures import Fixtures
from assay.sandbox.harness.frames import Channel
from assay.sandbox.harness.grants import Grants, UnsupportedRequest
from assay.sandbox.harness.names import LIBRARIES, called_at_top
from assay.sandbox.harness.peer import CandidateEndedError, Line, Peer
from assay.sandbox.harness.protocol import ANSWER, BEGIN, DONE, HELLO, HarnessFrame
from assay.sandbox.harness.references import Ref
from assay.sandbox.harness.texts import Texts

MODULE: Final = "assay_tests"
_WARM_UP_ROUNDS: Final = 10  # the interpreter has settled on a function's form after eight calls
_WARM_UP: Final = """\
import unittest
import pytest
assert f([1], a={2: "x"}) == 2
class T(unittest.TestCase):
    def test_it(self):
        self.assertEqual(f((1, None)), 2)
@pytest.mark.parametrize("a, b", [(1, 2)])
def test_it(a, b):
    assert f(a) == pytest.approx(b)
"""
_OURS: Final = frozenset({"pytest"})  # not installed here: a stand-in


def main(channel_fd: int, argv: tuple[str, ...]) -> int:
    """Waits for the test code, runs it, and reports the outcome; returns the exit code."""
    channel = Channel(channel_fd)
    channel.send(HELLO, b"")
    kind, tag, content = channel.receive()
    if kind != BEGIN:
        return 1
    begin: Any = decode(content)
    code, entry_point, stem = begin
    outcome, text = _Session(channel, code, entry_point, stem).run()
    channel.send(DONE, encode([outcome, text[:2000]]), tag)
    return 0


def warm_up(path: str) -> None:
    """Runs a few tests in this process, so that its children's first ones cost less.

    Args:
        path: unused; other harnesses put a program there.
    """
    del path
    saved = list(sys.meta_path), unittest.main
    for _ in range(_WARM_UP_ROUNDS):
        _Session(_Rehearsal(), _WARM_UP, "", "main").run()
        sys.meta_path[:], unittest.main = saved[0], saved[1]
    for name in ("pytest", MODULE):
        sys.modules.pop(name, None)


class _Rehearsal:
    """A channel to a program that defines `f`, which returns 2."""

    def __init__(self) -> None:
        self._answer = HarnessFrame(ANSWER, b"", b"")

    def send(self, kind: bytes, content: bytes, tag: bytes) -> None:
        request: Any = decode(content)
        answers: dict[str, list[object]] = {
            "load": [["f"]],
            "lookup": [[["f", Ref("c", 0, "function", "f", ("__call__",))]]],
            "call": [2, [], -1],
        }
        answer = encode(["value", *answers[request[0]]])
        self._answer = HarnessFrame(ANSWER, tag, answer)

    def receive(self) -> HarnessFrame:
        return self._answer


class _Invalid(Exception):
    """The test code itself cannot be run."""


class _Session:
    def __init__(self, channel: Line, code: str, entry_point: str, stem: str) -> None:
        self._code = code
        self._entry_point = entry_point
        self._modules = {stem, "solution"} - {""}
        self._module = types.ModuleType(MODULE)
        self._peer = Peer(channel, Grants(MODULE))
        self._wanted: frozenset[str] = frozenset()
        self._run_count = 0
        self._found = False
        self._mention: int | None = None

    def run(self) -> tuple[str, str]:
        """The outcome (passed, wrong, error, memory, forged or invalid), and why."""
        try:
            tree = self._parse()
            self._connect(tree)
            self._execute(tree)
        except _Invalid as error:
            return "invalid", str(error)
        except BaseException as error:  # noqa: BLE001 - the fault boundary
            return self._judged(error)
        if self._peer.refused is not None or self._peer.ended is not None:
            return self._judged(self._peer.refused or self._peer.ended)
        used = self._peer.used or self._found
        if not (used and (self._peer.calls or self._run_count)):
            return "invalid", "the test code never used the program"
        return "passed", ""

    def _parse(self) -> ast.Module:
        try:
            tree = ast.parse(self._code, "<tests>")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise _Invalid(f"the test code does not parse: {error}") from error
        self._check(tree)
        return tree

    def _check(self, tree: ast.Module) -> None:
        """Refuses test code that fails with any program.

        Raises:
            _Invalid: it asks for what is not here.
        """
        for name in sorted(names.imported(tree) - self._modules - _OURS):
            if importlib.util.find_spec(name) is None:
                raise _Invalid(f"the test code imports {name!r}, which is not installed here")
        self._wanted = names.subject_names(tree, self._entry_point)
        theirs = self._wanted | names.taken_from(tree, self._modules)
        for name in names.derived_from(tree, theirs):
            raise _Invalid(f"test code cannot derive a class from one of the program's ({name})")

    def _connect(self, tree: ast.Module) -> None:
        """Loads the program, and puts its names where the test code looks for them."""
        public = self._peer.load()
        namespace = self._module.__dict__
        of_library = names.library_names(tree, self._wanted, self._entry_point)
        for name, library in of_library.items():
            self._take(name, library, namespace)
        in_texts = names.named_in_texts(tree).intersection(public)
        free = [name for name in sorted(self._wanted | in_texts) if not name.startswith("__")]
        wanted = [name for name in free if name not in namespace]
        found = self._peer.lookup(wanted)
        namespace.update(found)
        self._mention = names.first_mention(tree, frozenset(wanted), self._modules)
        self._found = bool(names.used_names(tree) & found.keys())
        self._peer.used = False  # by the tests; that was us
        for name in wanted:
            if name not in namespace and name in LIBRARIES and name != self._entry_point:
                self._take(name, name, namespace)
        blocks = names.unasserted_blocks(tree)
        self._peer.is_let_happen = lambda error: any(_line_of(error) in block for block in blocks)
        self._texts = Texts(tree, self._peer, names.bound_names(tree))
        namespace["__builtins__"] = {**vars(builtins), **self._texts.functions()}
        shown = [name for name in public if name in self._wanted]
        sys.meta_path.insert(0, _Finder(self._peer, self._modules, shown))
        sys.modules["pytest"] = pytest_stand_in.module()
        sys.modules[MODULE] = self._module

    def _take(self, name: str, library: str, namespace: dict[str, object]) -> None:
        try:
            module = importlib.import_module(library)
        except ImportError:
            return
        whole = name == library or names.ALIASES.get(name) == library
        namespace[name] = module if whole else getattr(module, name)

    def _execute(self, tree: ast.Module) -> None:
        namespace = self._module.__dict__
        unittest.main = _no_main  # type: ignore[assignment]
        code = compile(tree, "<tests>", "exec", dont_inherit=True)
        self._texts.trust(code)
        try:
            exec(code, namespace)  # noqa: S102 - this is its purpose
        except SystemExit as stop:
            if stop.code not in (None, 0) or any(stop is raised for raised in self._peer.raised):
                raise
        self._run_count += any(isinstance(part, ast.Assert) for part in _at_top(tree))
        check = namespace.get("check")
        if _is_own(check) and "check" not in called_at_top(tree):
            self._run_count += 1
            self._call_check(check)
        fixtures = Fixtures(namespace)
        for name, value in list(namespace.items()):
            if isinstance(value, type) and value.__module__ == MODULE:
                if issubclass(value, unittest.TestCase):
                    self._run_count += _run_unittest(value)
                elif name.startswith("Test"):
                    self._run_count += _run_class(value, fixtures)
            elif name.startswith("test") and _is_own(value) and name not in called_at_top(tree):
                self._run_count += pytest_stand_in.call(value, fixtures)
        fixtures.close()

    def _call_check(self, check: Any) -> None:
        if check.__code__.co_argcount == 0:
            check()
            return
        if not self._entry_point:
            raise _Invalid("check(candidate) needs the entry point's name")
        if self._entry_point not in self._module.__dict__:
            raise NameError(f"name {self._entry_point!r} is not defined", name=self._entry_point)
        check(self._module.__dict__[self._entry_point])

    def _judged(self, error: BaseException | None) -> tuple[str, str]:
        """`_judge`, even where showing an exception raises another."""
        try:
            return self._judge(error)
        except BaseException:  # noqa: BLE001 - what an exception holds may be the program's
            if self._peer.ended is not None:
                return "forged", str(self._peer.ended)
            return "wrong", f"the test code raised {type(error).__name__}, which cannot be shown"

    def _judge(self, error: BaseException | None) -> tuple[str, str]:
        """Who is at fault for an exception."""
        refused = error if isinstance(error, UnsupportedRequest) else self._peer.refused
        if refused is not None:
            return "invalid", _line(refused)
        ended = error if isinstance(error, CandidateEndedError) else self._peer.ended
        if ended is not None:
            return "forged", str(ended)
        assert error is not None
        return self._candidates(error) or self._tests(error)

    def _candidates(self, error: BaseException) -> tuple[str, str] | None:
        source: BaseException | None = error
        for _ in range(_MOST_CAUSES):
            if source is None:
                break
            if any(source is raised for raised in self._peer.raised):
                memory = isinstance(source, MemoryError)
                return "memory" if memory else "error", f"the program raised {_line(source)}"
            source = source.__cause__
        if isinstance(error, NameError) and error.name in self._wanted:
            return "error", f"the program does not define {error.name!r}"
        if isinstance(error, ImportError) and error.name in self._modules:
            return "error", f"the program lacks a name: {error}"
        return None

    def _is_before_use(self, error: BaseException) -> bool:
        """Whether an exception came before anything of the program's was used.

        Either the test code at its place has nothing to do with the program, or its statements had
        not
        reached the first line that has.
        """
        if self._peer.used or self._mention is None:
            return not self._peer.used
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != "<tests>":
            trace = trace.tb_next
        if trace is None or trace.tb_frame.f_code.co_name != "<module>":
            return False
        return trace.tb_lineno < self._mention

    def _tests(self, error: BaseException) -> tuple[str, str]:
        text = _line(error)
        if self._is_before_use(error):
            return "invalid", f"the test code raised {text}{_where(error)}"
        if isinstance(error, AssertionError):
            return "wrong", f"assertion failed{_where(error)}: {text}"
        if isinstance(error, SystemExit):
            return "wrong", f"the test code exits with {error.code!r}{_where(error)}"[:200]
        return "wrong", f"the test code could not use the answer: {text}{_where(error)}"


_MOST_CAUSES: Final = 100


def _at_top(tree: ast.Module) -> list[ast.AST]:
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            found.append(node)
            waiting += ast.iter_child_nodes(node)
    return found


def _is_own(value: object) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__ == MODULE


def _line(error: BaseException) -> str:
    """An exception in one line; with the program's own text, where it is the program's."""
    name, known = type(error).__name__, error.__dict__.get("_assay_text")
    try:
        text = (str(error) if known is None else str(known)).strip()
    except Exception:  # noqa: BLE001 - an exception of the tests' own
        text = ""
    return f"{name}: {text.splitlines()[0]}" if text else name


def _where(error: BaseException) -> str:
    line = _line_of(error)
    return f" in line {line} of the tests" if line else ""


def _line_of(error: BaseException) -> int:
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<tests>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _no_main(*_: object, **__: object) -> None:
    """Stands for unittest.main: the cases run after the code."""


class _Result(unittest.TestResult):
    def addError(self, test: Any, err: Any) -> None:  # noqa: N802 - unittest's name
        raise err[1]

    addFailure = addError  # noqa: N815

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            raise err[1]

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        raise AssertionError(f"unexpected success of {test}")


def _run_unittest(case: type[unittest.TestCase]) -> int:
    result = _Result()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result.testsRun - len(result.skipped)


def _run_class(case: type, around: Fixtures) -> int:
    """A class of tests as pytest takes them: a fresh instance for each method."""
    count = 0
    for name in [name for name in vars(case) if name.startswith("test")]:
        instance = case()
        fixtures = Fixtures(vars(case), around, instance)
        for step in ("setup_method", name, "teardown_method"):
            method = getattr(instance, step, None)
            if method is not None:
                count += pytest_stand_in.call(method, fixtures) * (step == name)
    return count


class _Program(types.ModuleType):
    def __init__(self, name: str, peer: Peer, public: list[str]) -> None:
        super().__init__(name)
        self.__dict__["__all__"] = public
        self.__dict__["_peer"] = peer

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__["_peer"].lookup([name])
        if name not in found:
            raise AttributeError(f"the program does not define {name!r}")
        self.__dict__[name] = found[name]
        return found[name]

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("__"):
            raise UnsupportedRequest("test code cannot replace names of the program")
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
        return _Program(spec.name, self._peer, self._public)

    def exec_module(self, module: types.ModuleType) -> None:
        """Does nothing: the program was loaded in its own process."""
