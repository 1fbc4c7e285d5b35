"""Workspaces of rows, and hidden tests of what the policy left in them, judged outside of it.

Python test code runs in a process that holds none of the policy's, and calls its modules over the
sandbox's channel; a program's output is compared with what it never sees (ADR 6). A conftest, a
`.pth` or an `os._exit(0)` of the policy's reaches its own process and no verdict.
"""

from __future__ import annotations

import ast
import io
import json
import secrets
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from assay.clients.execution import Comparison, Limits, Program, SourceFile, TestJob, TestSuite
from assay.clients.execution.types import AssertTest, StdioTest
from assay.clients.sessions.folders import read_folder
from assay.environments.cells import is_path
from assay.environments.environment import Row
from assay.kit.errors import ConfigError

_LEFT_OUT = frozenset({".git", "__pycache__", ".pytest_cache", ".benchmarks"})
_MOST_FILES = 4000
_NOT_THEIRS = sys.stdlib_module_names | {"pytest", "numpy", "hypothesis"}
_ENTRY = """\
import importlib as _importlib, sys as _sys
_sys.path[:0] = {paths!r}
for _name in {modules!r}:
    _module = _importlib.import_module(_name)
    for _key, _value in list(vars(_module).items()):
        if not (_key.startswith("__") and _key.endswith("__")):
            globals()[_key] = _value
"""


def workspace_of(row: Row, base: str = "") -> dict[str, bytes]:
    """The files that an episode of this row begins with.

    `folder` and `tar` are paths below `base`; `tar` may be an archive's bytes.

    Raises:
        ConfigError: a path leads nowhere, or out of the workspace.
    """
    found: dict[str, bytes] = {}
    if row.get("folder"):
        found.update(read_folder(Path(base, str(row["folder"]))))
    if row.get("tar"):
        found.update(_unpacked(row["tar"], base))
    found.update(files_of(row))
    for path in found:
        if not is_path(path):
            raise ConfigError(
                f"the workspace's path {path[:200]!r} leads out of it, or is too long"
            )
    return found


def files_of(row: Mapping[str, Any]) -> dict[str, bytes]:
    """The column `files`: a table by path, or its JSON; None stands for no file.

    Raises:
        ConfigError: it is something else.
    """
    given = _read(row.get("files"), "files")
    if not isinstance(given or {}, Mapping):
        raise ConfigError(f"`files` is {type(given).__name__}, no table of paths and texts")
    return {str(path): _bytes(text) for path, text in (given or {}).items() if text is not None}


def tests_of(row: Row) -> list[Mapping[str, Any]]:
    """The column `tests`: a list of tables, or its JSON.

    Raises:
        ConfigError: it is something else, or empty.
    """
    given = _read(row.get("tests"), "tests")
    if not given or not isinstance(given, list | tuple):
        raise ConfigError("a row of a repository needs `tests`, a list")
    if not all(isinstance(one, Mapping) for one in given):
        raise ConfigError("one of a row's `tests` is no table")
    return list(given)


def _read(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value or "null")
    except ValueError as error:
        raise ConfigError(f"`{name}` is no JSON: {error}") from error


def is_tested(path: str) -> bool:
    """Whether a file of a workspace is tested: caches are not, nor what no run takes."""
    return (
        is_path(path) and not path.endswith(".pyc") and not _LEFT_OUT.intersection(path.split("/"))
    )


def size_of(files: Mapping[str, bytes]) -> int:
    """Their bytes; more than any limit where they are too many."""
    if len(files) > _MOST_FILES:
        return sys.maxsize
    return sum(len(path.encode()) + len(content) for path, content in files.items())


def test_jobs(
    tests: Sequence[Mapping[str, Any]], files: Mapping[str, bytes], wall_s: float
) -> list[TestJob | None]:
    """A job for each test; None where the program that it runs is not there.

    Raises:
        ConfigError: a test is none.
    """
    return [_job(test, files, wall_s) for test in tests]


def _job(test: Mapping[str, Any], files: Mapping[str, bytes], wall_s: float) -> TestJob | None:
    limits = Limits(wall_time_s=wall_s, cpu_time_s=wall_s)
    given = {**files, **files_of(test)}
    name = str(test.get("name") or "")
    if test.get("code"):
        code, modules = hidden_code(str(test["code"]), test.get("modules") or ())
        paths = [str(one) for one in test.get("paths") or ()]
        entry = f"entry_{secrets.token_hex(8)}.py"
        given[entry] = _ENTRY.format(modules=list(modules), paths=paths).encode()
        case = AssertTest(code, str(test.get("entry_point") or ""), name, limits)
        program = Program("python", files=_sources(given), entry_path=entry)
        return TestJob(program, TestSuite((case,), limits))
    if not test.get("run"):
        raise ConfigError("a test of a row has neither `code` nor `run`")
    if test.get("stdout") is None:
        raise ConfigError(f"the test that runs {test['run']!r} has no `stdout` to expect")
    entry = str(test["run"])
    if entry not in given:
        return None
    comparison = Comparison(str(test.get("comparison") or "default"))
    run = StdioTest(
        _bytes(test.get("stdin") or ""),
        _bytes(test["stdout"]),
        name,
        comparison,
        tuple(map(str, test.get("arguments") or ())),
        limits,
    )
    language = str(test.get("language") or "python")
    program = Program(language, files=_sources(given), entry_path=entry)
    return TestJob(program, TestSuite((run,), limits))


def hidden_code(code: str, modules: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Test code with the workspace's modules as `solution`, and which they are.

    Without `modules` all that are imported and no library's.

    Raises:
        ConfigError: it does not parse, or imports no module of the workspace's.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"hidden test code does not parse: {error}") from error
    named = tuple(modules)
    reader = _Imports(frozenset(named))
    tree = ast.fix_missing_locations(reader.visit(tree))
    found = named or tuple(dict.fromkeys(reader.found))
    if not found:
        raise ConfigError("hidden test code imports no module of the workspace; name `modules`")
    return ast.unparse(tree), found


class _Imports(ast.NodeTransformer):
    """Names the workspace's modules `solution`, as the sandbox's tester does."""

    def __init__(self, modules: frozenset[str]) -> None:
        self.found: list[str] = []
        self._modules = modules

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level == 0 and node.module and self._is_theirs(node.module):
            self.found.append(node.module)
            return ast.ImportFrom("solution", node.names, 0)
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        names = []
        for one in node.names:
            if not self._is_theirs(one.name):
                names.append(one)
                continue
            if "." in one.name and one.asname is None:
                raise ConfigError(
                    f"hidden test code says `import {one.name}`; write `import {one.name} as NAME`"
                )
            self.found.append(one.name)
            names.append(ast.alias("solution", one.asname or one.name))
        return ast.Import(names)

    def _is_theirs(self, module: str) -> bool:
        if self._modules:
            return module in self._modules
        return module.partition(".")[0] not in _NOT_THEIRS


def _sources(files: Mapping[str, bytes]) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(path, content) for path, content in files.items())


def _bytes(content: Any) -> bytes:
    return content if isinstance(content, bytes) else str(content).encode()


def _unpacked(archive: Any, base: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        content = archive if isinstance(archive, bytes) else Path(base, str(archive)).read_bytes()
        with tarfile.open(fileobj=io.BytesIO(content)) as opened:
            for member in opened:
                held = opened.extractfile(member) if member.isreg() else None
                if held is not None:
                    found[str(PurePosixPath(member.name))] = held.read()
    except (OSError, tarfile.TarError) as error:
        raise ConfigError(f"the workspace's archive cannot be read: {error}") from error
    return found
