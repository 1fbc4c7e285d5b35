"""Verifiers in files: `--verifier [NAME=]FILE.py:FUNCTION`.

A file is the operator's code and may do anything when it is imported, so the server never imports
it. A process of its own describes it when the server starts, in bounded time; the workers import it
once, before they are forked. Its text, and that of the modules it imports from its own folder, is
in the version of its verifiers: a worker that finds another text gives a fault.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.pool.link import environment_of_a_worker
from assay.kit.pool.worker import die_with_parent
from assay.reward_server.domain import (
    Judgement,
    ParameterSpec,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.functions import ExampleError, FunctionVerifier, Row
from assay.reward_server.signatures import PlainFunction, ShapeError, read_signature, spec_of

IMPORT_S = 30.0
"""Seconds that a file may take to be imported."""

_SOURCE = re.compile(r"(?:([A-Za-z][\w-]{0,79})=)?([^=].*):([A-Za-z_]\w*)")
_DESCRIBE = "from assay.reward_server.files import describe; describe()"
_REVISION = "1"
_SHOWN = 8
_MOST_CHARS = 300


class FileError(Exception):
    """A verifier's file cannot be used; the text is one line without the file's name."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Where a verifier's function stands.

    Attributes:
        name: the verifier's; empty for the function's own.
        files: whose text is in the version, the function's own first; empty before it is known.
        version: of the verifier; empty before it is known.
    """

    path: Path
    function: str
    name: str = ""
    files: tuple[str, ...] = ()
    version: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.function}"

    def to_json(self) -> dict[str, Any]:
        """The source for a worker."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {
            "path": str(self.path)
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> FileSource:
        """The source again. Trusts its input: the server wrote it."""
        return cls(**{**body, "path": Path(body["path"]), "files": tuple(body["files"])})


class FileVerifier(FunctionVerifier):
    """A function of a file, as a verifier.

    Attributes:
        source: where it stands; its version is known.
        trouble: why its examples cannot be read; empty for a plain function, which has none.
        decorated: what the file holds, if that is a verifier already.
    """

    def __init__(
        self,
        source: FileSource,
        spec: VerifierSpec,
        function: Callable[..., Judgement],
        *,
        rows: Sequence[Row] = (),
        trouble: str = "",
        decorated: FunctionVerifier | None = None,
    ) -> None:
        prepare = None if decorated is None else decorated.prepare
        super().__init__(function, spec, prepare=prepare, glance=None, rows=rows)
        self.source = replace(source, name=spec.name, version=spec.version)
        self.trouble = trouble
        self.decorated = decorated

    @cached_property
    def examples(self) -> tuple[VerifierExample, ...]:
        """The rows of a decorated one.

        Raises:
            ExampleError: they cannot be read.
        """
        if self.trouble:
            raise ExampleError(self.trouble)
        return super().examples


def read_source(text: str) -> FileSource:
    """`[NAME=]FILE.py:FUNCTION` taken apart.

    Raises:
        ConfigError: it is of another form, or there is no such file.
    """
    found = _SOURCE.fullmatch(text)
    if found is None:
        raise ConfigError(f"--verifier {text!r}: write FILE.py:FUNCTION, or NAME=FILE.py:FUNCTION")
    path = Path(found[2]).absolute()
    if path.is_dir():
        raise ConfigError(f"--verifier {text}: {found[2]} is a folder; name a file")
    if not path.is_file():
        raise ConfigError(f"--verifier {text}: {found[2]} is not there; correct the path")
    return FileSource(path, found[3], found[1] or "")


def read_verifiers(texts: Iterable[str], limit_s: float = IMPORT_S) -> list[FileVerifier]:
    """The verifiers of the operator's files, as the server holds them: it never calls them.

    Args:
        texts: each `[NAME=]FILE.py:FUNCTION`.
        limit_s: seconds that each file may take.

    Raises:
        ConfigError: one cannot be used; the text is one line.
    """
    found = []
    for text in texts:
        source = read_source(text)
        try:
            found.append(_described(source, limit_s))
        except FileError as error:
            raise ConfigError(f"--verifier {text}: {' '.join(str(error).split())}") from None
    return found


def _described(source: FileSource, limit_s: float) -> FileVerifier:
    """Has another process import the file and describe its verifier.

    Raises:
        FileError: it cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="assay-verifier-") as folder:
        answer = Path(folder) / "answer.json"
        given = json.dumps({"source": source.to_json(), "answer": str(answer)})
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-c", _DESCRIBE, given, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment_of_a_worker(),
            start_new_session=True,
        )
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise FileError(f"importing it takes more than {limit_s:g} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not answer.is_file():
            raise FileError("importing it ends the interpreter")
        body = json.loads(answer.read_text(encoding="utf-8"))
    if "trouble" in body:
        raise FileError(body["trouble"])
    known = replace(source, files=tuple(body["files"]))
    spec = _spec_from_json(body["spec"])
    return FileVerifier(known, spec, _elsewhere, rows=body["rows"], trouble=body["no_rows"])


def _elsewhere(item: VerifierItem, **parameters: object) -> Judgement:
    raise RuntimeError("the server never calls a function of a file")


def describe() -> None:
    """Imports the file of the command line and writes what its verifier is, or what is wrong."""
    given = json.loads(sys.argv[1])
    die_with_parent(int(sys.argv[2]))
    body: dict[str, Any]
    try:
        made = load(FileSource.from_json(given["source"]))
        rows, no_rows = _rows(made)
        body = {"spec": _spec_to_json(made.spec), "files": made.source.files}
        body |= {"rows": rows, "no_rows": no_rows}
    except FileError as error:
        body = {"trouble": str(error)}
    unfinished = Path(given["answer"] + ".part")
    unfinished.write_text(json.dumps(body), encoding="utf-8")
    unfinished.rename(given["answer"])
    # Whatever threads and exit handlers the file has left behind have no say.
    os._exit(0)


def load(source: FileSource) -> FileVerifier:
    """Imports the file and makes its verifier, in this process.

    Raises:
        FileError: it cannot be used, or is not of the source's version any more.
    """
    module, text = _import(source.path)
    function = vars(module).get(source.function)
    if function is None:
        names = [name for name, one in vars(module).items() if _is_own(module, one)]
        known = ", ".join(names[:_SHOWN]) or "none"
        raise FileError(f"it has no function {source.function!r}; it has: {known}")
    files = source.files or (str(source.path), *_helpers(source.path))
    made = _verifier(replace(source, files=files), function, _digest(text, files))
    if source.version and made.spec.version != source.version:
        raise FileError("its text has changed since the server started; start the server again")
    return made


def _verifier(source: FileSource, function: object, digest: str) -> FileVerifier:
    if isinstance(function, FunctionVerifier):
        spec = function.spec
        name = source.name or spec.name
        tasks = (name,) if spec.tasks == (spec.name,) else spec.tasks
        version = f"{spec.version}+{digest}"
        spec = replace(spec, name=name, tasks=tasks, version=version, isolation="process")
        return FileVerifier(source, spec, function.function, decorated=function)
    name = source.name or source.function
    try:
        called, signature = read_signature(source.function, function)
    except ShapeError as error:
        raise FileError(str(error)) from None
    spec = spec_of(name, f"{_REVISION}+{digest}", signature, called)
    return FileVerifier(source, spec, PlainFunction(name, signature, called))


def _rows(made: FileVerifier) -> tuple[list[Row], str]:
    """The examples as data, or why there are none."""
    if made.decorated is None:
        return [], ""
    try:
        rows: list[Row] = json.loads(json.dumps(made.decorated.rows()))
    except (ExampleError, TypeError, ValueError, OSError) as error:
        return [], str(error)
    return rows, "" if rows else "it brings no examples"


def _import(path: Path) -> tuple[ModuleType, bytes]:
    """The module of a file, imported once in this process, and the text that was compiled."""
    name = f"assay_file_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    if name in sys.modules:
        module = sys.modules[name]
        return module, module.__dict__["__assay_text__"]
    try:
        text = path.read_bytes()
        code = compile(text, str(path), "exec", dont_inherit=True)
    except OSError as error:
        raise FileError(f"it cannot be read: {error.strerror or error}") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        at = f", line {line}" if line else ""
        raise FileError(f"it is not Python{at}: {getattr(error, 'msg', error)}") from None
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__dict__["__assay_text__"] = text
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - the operator's own file
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the isolation border: it may raise anything
        del sys.modules[name]
        raise FileError(_raised(path, error)) from None
    return module, text


def _raised(path: Path, error: BaseException) -> str:
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(path)
    ]
    at = f" at line {lines[-1]}" if lines else ""
    if isinstance(error, SystemExit):
        return f"importing it ends the interpreter{at}"
    return f"importing it raises {type(error).__name__}{at}: {str(error)[:_MOST_CHARS]}"


def _helpers(path: Path) -> Iterator[str]:
    """The files of the modules that were imported from the file's own folder, sorted."""
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        base = path.parent.joinpath(*name.split("."))
        if isinstance(file, str) and file in {f"{base}.py", str(base / "__init__.py")}:
            found.add(file)
    yield from sorted(found - {str(path)})


def _digest(text: bytes, files: Iterable[str]) -> str:
    digest = hashlib.sha256(text)
    for file in list(files)[1:]:
        try:
            body = Path(file).read_bytes()
        except OSError as error:
            raise FileError(f"{file} cannot be read: {error.strerror or error}") from None
        digest.update(b"\0" + hashlib.sha256(body).digest())
    return digest.hexdigest()[:16]


def _is_own(module: ModuleType, value: object) -> bool:
    if isinstance(value, FunctionVerifier):
        return True
    return inspect.isfunction(value) and value.__module__ == module.__name__


def _spec_to_json(spec: VerifierSpec) -> dict[str, Any]:
    body = {one.name: getattr(spec, one.name) for one in fields(spec) if one.init}
    return {**body, "parameters": [asdict(one) for one in spec.parameters]}


def _spec_from_json(body: dict[str, Any]) -> VerifierSpec:
    parameters = tuple(
        ParameterSpec(**{key: _tuple(value) for key, value in one.items()})
        for one in body.pop("parameters")
    )
    return VerifierSpec(
        **{key: _tuple(value) for key, value in body.items()}, parameters=parameters
    )


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
