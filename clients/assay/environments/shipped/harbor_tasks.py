"""Harbor's task format, read: which tasks a sandbox without containers can run, and why others not.

Nothing is built. Of a Dockerfile are taken one FROM of a plain base image, WORKDIR, COPY and ADD of
local files, ENV, and commands on files and git, which run at the start; installing packages is
passed over: the task's oracle shows whether it runs without. WORKDIR, /root, /tests, /solution and
/logs become folders that a session can write, in the texts that name them.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from assay.environments.cells import is_path
from assay.kit.errors import ConfigError

WORK, TESTS, SOLUTION, LOGS = "/box", "/tmp/tests", "/tmp/solution", "/tmp/logs"  # noqa: S108
_IMAGES = re.compile(
    r"(?:(?:docker\.io|public\.ecr\.aws)/)?(?:docker/)?(?:library/)?"
    r"(?:python|debian|ubuntu|bash|buildpack-deps)(?::[\w.-]+)?(?:@sha256:[0-9a-f]+)?"
)
_PASSED_OVER = frozenset({"CMD", "LABEL", "ARG", "EXPOSE", "USER", "SHELL", "MAINTAINER"})
_INSTALLS = re.compile(
    r"(?:(?:apt-get|apt) (?:-\S+ )*(?:update|install|clean|autoremove|upgrade)\b.*"
    r"|(?:python3? -m )?pip3? (?:-\S+ )*install\b.*|rm -rf /var/lib/apt/lists/?\*?|true|:"
    r")"
)
_RUN_HERE = re.compile(
    r"(?:mkdir|chmod|touch|cp|mv|ln|rm|echo|printf|git (?:init|config|add|commit|branch|checkout))"
    r"(?: .*)?"
)

_HOME = re.compile(rb"(?:~(?=/)|\bHOME\b\}?+|expanduser|Path\.home|/root\b)(?!/\.local/bin)")


class TaskRefused(ConfigError):
    """A task that cannot run here; the text says why."""


@dataclass(frozen=True, slots=True)
class HarborTask:
    """A task as a session runs it: its paths are those of the session."""

    instruction: str
    files: Mapping[str, bytes]  # of the working folder at the start
    tests: Mapping[str, bytes]  # by path below TESTS
    solution: Mapping[str, bytes]  # by path below SOLUTION; empty where there is none
    env: Mapping[str, str] = field(default_factory=dict)  # of the policy's shell and the tests
    tests_env: Mapping[str, str] = field(default_factory=dict)
    tests_at_home: bool = False  # they look into the policy's home folder
    installs: tuple[str, ...] = ()  # commands that were passed over
    commands: tuple[str, ...] = ()  # of the build, to run in the working folder at the start
    verifier_s: float = 120.0


def read_task(files: Mapping[str, bytes]) -> HarborTask:
    """The task of a folder's files, by path.

    Raises:
        TaskRefused: it is none, or cannot run here.
    """
    config = _config(files)
    image = _Image(_below(files, "environment/"))
    environment = _table(config, "environment")
    image.read(str(environment.get("docker_image") or ""), str(environment.get("workdir") or ""))
    paths = _Paths(image.workdir)
    tests = _below(files, "tests/")
    if "test.sh" not in tests:
        raise TaskRefused("it has no tests/test.sh")
    verifier = _table(config, "verifier")
    return HarborTask(
        instruction=paths.put(_text(files, "instruction.md")),
        files=image.files,
        tests={path: paths.put_bytes(content) for path, content in tests.items()},
        solution={
            path: paths.put_bytes(content) for path, content in _below(files, "solution/").items()
        },
        env={**image.env, **_env(config, "environment")},
        tests_env=_env(config, "verifier"),
        tests_at_home=any(_HOME.search(content) for content in tests.values()),
        installs=tuple(image.installs),
        commands=tuple(map(paths.put, image.commands)),
        verifier_s=float(verifier.get("timeout_sec") or 120.0),
    )


def _config(files: Mapping[str, bytes]) -> Mapping[str, Any]:
    try:
        config = tomllib.loads(_text(files, "task.toml"))
    except tomllib.TOMLDecodeError as error:
        raise TaskRefused(f"task.toml cannot be read: {error}") from error
    environment, verifier = _table(config, "environment"), _table(config, "verifier")
    if config.get("steps"):
        raise TaskRefused("it has several steps, each with tests of its own")
    for name in ("docker-compose.yaml", "docker-compose.yml"):
        if f"environment/{name}" in files:
            raise TaskRefused("its environment is several containers")
    if environment.get("gpus"):
        raise TaskRefused("it wants a GPU")
    if environment.get("mcp_servers"):
        raise TaskRefused("it wants MCP servers")
    if str(environment.get("os") or "linux").lower() != "linux":
        raise TaskRefused("it is not for Linux")
    if str(verifier.get("environment_mode") or "shared") != "shared":
        raise TaskRefused("its tests want a container of their own")
    return config


class _Image:
    """What a Dockerfile says of the working folder."""

    def __init__(self, context: Mapping[str, bytes]) -> None:
        self.workdir = ""
        self.files: dict[str, bytes] = {}
        self.env: dict[str, str] = {}
        self.installs: list[str] = []
        self.commands: list[str] = []
        self._context = context

    def read(self, prebuilt: str, workdir: str) -> None:
        """Raises TaskRefused for what cannot be had."""
        if "Dockerfile" in self._context:
            self._read(self._context["Dockerfile"].decode("utf-8", "replace"))
        elif not prebuilt:
            raise TaskRefused("it has no Dockerfile")
        elif not _IMAGES.fullmatch(prebuilt):
            raise TaskRefused(f"its image {prebuilt} is built elsewhere")
        else:
            self.files.update(self._context)
        if workdir and workdir != self.workdir:
            self._into(workdir)
        if not self.workdir:
            raise TaskRefused("it names no working folder (WORKDIR)")

    def _read(self, text: str) -> None:
        bases = 0
        for word, rest in _instructions(text):
            if word == "FROM":
                bases += 1
                if bases > 1 or not _IMAGES.fullmatch((rest.split() or [""])[0]):
                    raise TaskRefused(f"its image is no plain base image: FROM {rest}")
            elif word == "WORKDIR":
                self._into(rest)
            elif word in {"COPY", "ADD"}:
                self._copy(word, rest)
            elif word == "ENV":
                self._set(rest)
            elif word == "RUN":
                self._run(rest)
            elif word not in _PASSED_OVER:
                raise TaskRefused(f"its Dockerfile says {word}")

    def _into(self, path: str) -> None:
        path = path.strip("\"'").rstrip("/")
        if self.workdir or not re.fullmatch(r"/[\w.-]+(?:/[\w.-]+)*", path):
            raise TaskRefused(f"its working folder is not one absolute path: WORKDIR {path}")
        if path.split("/")[1] in {"tests", "logs", "solution", "tmp", "usr", "etc", "bin"}:
            raise TaskRefused(f"its working folder {path} has another use here")
        self.workdir = path

    def _copy(self, word: str, rest: str) -> None:
        parts = _split(rest)
        if len(parts) < 2 or any(part.startswith(("--", "[", "http:", "https:")) for part in parts):
            raise TaskRefused(f"its Dockerfile says {word} {rest}")
        target = self._within(parts[-1], f"{word} {rest}")
        into = parts[-1].endswith("/") or parts[-1] in {".", "./"} or len(parts) > 2
        for source in parts[:-1]:
            name = str(PurePosixPath(source.lstrip("/")))
            below = {
                path: content
                for path, content in self._context.items()
                if name in {".", path} or path.startswith(f"{name}/")
            }
            if not below or any(mark in source for mark in "*?["):
                raise TaskRefused(f"what its Dockerfile copies is not there: {source}")
            for path, content in below.items():
                if path == name:
                    where = str(PurePosixPath(target, PurePosixPath(path).name if into else ""))
                else:
                    where = str(PurePosixPath(target, path.removeprefix(f"{name}/")))
                if not is_path(where):
                    raise TaskRefused(f"its Dockerfile copies {path} out of the working folder")
                if path != "Dockerfile" or path == name:
                    self.files[where] = content

    def _within(self, path: str, said: str) -> str:
        """A target's path below the working folder."""
        if not path.startswith("/"):
            return str(PurePosixPath(path))
        if self.workdir and (path.rstrip("/") + "/").startswith(f"{self.workdir}/"):
            return str(
                PurePosixPath(path.rstrip("/").removeprefix(self.workdir).lstrip("/") or ".")
            )
        raise TaskRefused(f"its Dockerfile writes outside of the working folder: {said}")

    def _set(self, rest: str) -> None:
        parts = _split(rest)
        if parts and "=" not in parts[0]:
            parts = [f"{parts[0]}={' '.join(parts[1:])}"]
        for part in parts:
            name, _, value = part.partition("=")
            if "$" in value or name == "PATH":
                raise TaskRefused(f"its Dockerfile says ENV {rest}")
            self.env[name] = value

    def _run(self, rest: str) -> None:
        for command in re.split(r"&&|;|\|\|", rest):
            words = " ".join(command.split())
            if _INSTALLS.fullmatch(words):
                self.installs.append(words)
            elif _RUN_HERE.fullmatch(words) and not re.search(r"[`|]|\$\(", words):
                self.commands.append(words)
            elif words:
                raise TaskRefused(f"its image needs a build: RUN {words[:120]}")


class _Paths:
    """Puts a session's paths in the place of a container's."""

    def __init__(self, workdir: str) -> None:
        self._moved = {
            workdir: WORK, "/tests": TESTS, "/solution": SOLUTION, "/oracle": SOLUTION,
            "/logs": LOGS, "/root": WORK,
        }  # fmt: skip
        names = "|".join(re.escape(name) for name in sorted(self._moved, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<![\w./$}}~-])({names})(?![\w-]|\.\w)")

    def put(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._moved[found.group(1)], text)

    def put_bytes(self, content: bytes) -> bytes:
        try:
            return self.put(content.decode()).encode()
        except UnicodeDecodeError:
            return content


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield word.upper(), rest.strip()


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise TaskRefused(f"its Dockerfile cannot be read: {text[:100]}") from error


def _below(files: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    return {
        path.removeprefix(prefix): content
        for path, content in files.items()
        if path.startswith(prefix)
    }


def _text(files: Mapping[str, bytes], path: str) -> str:
    if path not in files:
        raise TaskRefused(f"it has no {path}")
    try:
        return files[path].decode()
    except UnicodeDecodeError as error:
        raise TaskRefused(f"{path} is no UTF-8") from error


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = config.get(name)
    return found if isinstance(found, Mapping) else {}


def _env(config: Mapping[str, Any], name: str) -> dict[str, str]:
    found = _table(config, name).get("env")
    if not isinstance(found, Mapping):
        return {}
    values = {str(key): str(value) for key, value in found.items()}
    if wanted := [key for key, value in values.items() if "$" in value]:
        raise TaskRefused(f"its tests or tools want the caller's {', '.join(wanted)}")
    return values
