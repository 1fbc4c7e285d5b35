"""The sessions of one `assay session`, and the commands that act on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from assay.cli.ends import FAULT_CODE
from assay.cli.sessions.showing import Shower, exit_code, is_fault, size
from assay.clients.sessions import (
    Checkpoint,
    ProgramEndError,
    Session,
    SessionClient,
    SessionLimits,
    SessionLost,
)
from assay.kit.errors import AssayError, ConfigError
from assay.kit.hints import did_you_mean

HELP = """\
:checkpoint [NAME]   keep memory and files as they are now
:rollback [NAME]     go back to a checkpoint, the last one without NAME
:fork [NAME]         copy the session, and go on in the copy
:use [NAME]          go on in another session; without NAME: which there are
:new                 end this session and begin another
:python, :bash       go on in a session of that language
:files               list the files
:put PATH            copy a local file or folder into the session
:get PATH [TO]       copy a file out of it; :get . copies all
:limits              what the session may use
:help                this list
:quit                end; so does Ctrl-D"""


class Quit(Exception):  # no error
    """The user has enough."""


@dataclass(slots=True)
class NamedSession:
    """A session with the names of its checkpoints."""

    name: str
    language: str
    session: Session
    points: dict[str, Checkpoint] = field(default_factory=dict)


class Shell:
    """Runs cells and commands.

    Attributes:
        language: of the session in use.
        code: the exit code so far: of the last cell or command that failed.
    """

    def __init__(
        self, client: SessionClient, shower: Shower, language: str, limits: SessionLimits
    ) -> None:
        self._client = client
        self._shower = shower
        self._limits = limits
        self._rooms: dict[str, NamedSession] = {}
        self.code = 0
        self._room = self._open(language, language)

    @property
    def language(self) -> str:
        """Of the session in use."""
        return self._room.language

    @property
    def name(self) -> str:
        """Of the session in use; empty where there is one only."""
        return self._room.name if len(self._rooms) > 1 else ""

    def take(self, text: str) -> bool:
        """Runs a cell or a command; whether it went well.

        Raises:
            Quit: the command to end.
        """
        try:
            self.code = self._command(text) if text.startswith(":") else self._cell(text)
        except AssayError as error:
            self._shower.failure(error)
            self.code = FAULT_CODE if is_fault(error) else 1
            if isinstance(error, ProgramEndError | SessionLost):
                self._shower.note(
                    ":rollback goes back to a checkpoint, :new begins another session"
                )
        return self.code == 0

    def interrupted(self) -> None:
        """The user has interrupted a cell."""
        self.code = 130
        self._shower.note("interrupted; the session goes on")

    def _cell(self, code: str) -> int:
        session = self._room.session
        result = session.execute(code, on_event=self._shower.event)
        self._shower.result(session, result)
        return exit_code(result)

    def _command(self, text: str) -> int:
        name, *words = text.removeprefix(":").split()
        known: dict[str, Callable[[list[str]], None]] = {
            "checkpoint": self._checkpoint,
            "rollback": self._rollback,
            "fork": self._fork,
            "use": self._use,
            "new": self._new,
            "python": lambda _: self._switch("python"),
            "bash": lambda _: self._switch("bash"),
            "files": self._files,
            "put": self._put,
            "get": self._get,
            "limits": self._show_limits,
            "help": lambda _: self._shower.note(HELP),
            "quit": self._quit,
        }
        if name not in known:
            raise ConfigError(f"no command :{name}{did_you_mean(name, list(known))}; see :help")
        known[name](words)
        return 0

    def _open(self, name: str, language: str) -> NamedSession:
        self._rooms[name] = NamedSession(
            name, language, self._client.create(language, limits=self._limits)
        )
        return self._rooms[name]

    def _switch(self, language: str) -> None:
        if language == self.language:
            return
        found = [room for room in self._rooms.values() if room.language == language]
        if found:
            self._room = found[-1]
        else:
            self._room = self._open(language, language)
            self._shower.note(f"a {language} session, with files of its own")

    def _checkpoint(self, words: list[str]) -> None:
        name = words[0] if words else str(len(self._room.points) + 1)
        old = self._room.points.pop(name, None)
        self._room.points[name] = self._room.session.checkpoint()
        if old is not None:
            old.drop()
        self._shower.note(f"checkpoint {name}")

    def _rollback(self, words: list[str]) -> None:
        points = self._room.points
        if not points:
            raise ConfigError("there is no checkpoint; :checkpoint makes one")
        name = words[0] if words else list(points)[-1]
        if name not in points:
            raise ConfigError(f"no checkpoint {name}; there is {', '.join(points)}")
        self._room.session.rollback(points[name])
        self._shower.note(f"back at checkpoint {name}")

    def _fork(self, words: list[str]) -> None:
        name = words[0] if words else f"fork-{len(self._rooms)}"
        if name in self._rooms:
            raise ConfigError(f"there is a session {name}; choose another name")
        [copy] = self._room.session.fork()
        self._room = self._rooms[name] = NamedSession(name, self.language, copy)
        self._shower.note(f"this is {name} now; :use goes back")

    def _use(self, words: list[str]) -> None:
        if not words:
            self._shower.note(", ".join(self._rooms))
        elif words[0] not in self._rooms:
            raise ConfigError(f"no session {words[0]}; there is {', '.join(self._rooms)}")
        else:
            self._room = self._rooms[words[0]]

    def _new(self, _: list[str]) -> None:
        self._room.session.close()
        self._room = self._open(self._room.name, self.language)

    def _files(self, _: list[str]) -> None:
        listing = self._room.session.list_files()
        lines = [f"{size(one.size_bytes):>10}  {one.path}" for one in listing]
        lines += ["and more"] * listing.truncated
        self._shower.note("\n".join(["the files:" if lines else "no files", *lines]))

    def _put(self, words: list[str]) -> None:
        if len(words) != 1:
            raise ConfigError("write :put PATH")
        path = Path(words[0]).expanduser()
        if path.is_dir():
            self._room.session.put_folder(path, under=path.resolve().name)
        else:
            self._room.session.put_files({path.name: path.read_bytes()})

    def _get(self, words: list[str]) -> None:
        if not 1 <= len(words) <= 2:
            raise ConfigError("write :get PATH, or :get PATH TO")
        session, path = self._room.session, words[0]
        if path == ".":
            written = session.get_folder(Path(words[1] if words[1:] else "."))
            self._shower.note(f"{len(written)} files written")
            return
        found = session.get_files([path])
        if path not in found:
            raise ConfigError(f"the session has no file {path}; see :files")
        target = Path(words[1] if words[1:] else Path(path).name)
        target.write_bytes(found[path])
        self._shower.note(f"{target}: {size(len(found[path]))}")

    def _show_limits(self, _: list[str]) -> None:
        limits = self._room.session.limits
        self._shower.note(
            f"a cell: {limits.cell_wall_time_s} s on the clock, {limits.cell_cpu_time_s} s of CPU; "
            f"the session: {limits.cpu_time_s} s of CPU, {size(limits.memory_bytes or 0)} of "
            f"memory with its files and checkpoints, {size(limits.disk_bytes or 0)} of files, "
            f"{limits.processes} processes, {limits.checkpoints} checkpoints"
        )

    def _quit(self, _: list[str]) -> None:
        raise Quit
