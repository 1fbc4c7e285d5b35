"""Runs cells of bash in one shell that lives from cell to cell.

The shell is an interactive one, so that an error or an interrupt ends a cell and leaves the shell,
without a terminal, a prompt, a history or files of its own. It reads lines of ours from its stdin
and writes to a pipe, each word of it with the cell's number and a null character at its end:

    s1                it has read the cell, which begins now: from here on SIGINT is passed on
    1 0 hiBs /folder  the cell has ended: its status, options, and the working directory
    y1.0              no interrupt of the cell is on its way any more; the number of the question

A cell's text comes through a pipe of its own; its output goes straight to this process's stdout and
stderr; its stdin is empty. None of our descriptors is open in it, nor in what it starts.

A copy of the process holds the shell's state as text, from which each begins a new shell:
variables, functions, aliases, options, traps, positional parameters, umask, working directory.

Covered: a cell that is no whole command, reads stdin, redirects, traps, sets options, ends or
replaces the shell; SIGINT at any moment.
Not covered in copies: the shell's process id, `$!`, limits set by ulimit, the stack of directories,
completions; and RANDOM and SECONDS, which start anew.
"""

from __future__ import annotations

import contextlib
import os
import re
from _signal import SIGINT, SIGKILL, SIGPIPE, SIGTERM, SIGXFSZ
from _signal import signal as set_signal
from binascii import crc32
from collections.abc import Callable
from select import POLLIN, poll
from time import sleep
from typing import Any, Final

from assay.sandbox.harness.interpreters import Bundle, CellOutcome

_PATHS: Final = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_ARGUMENTS: Final = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
_OUT, _ERR, _SAYS, _CODE = 60, 61, 62, 63  # in the shell
_START: Final = (
    b"PS1= PS2=; builtin set +o history +H; builtin shopt -u checkwinsize; "
    b"builtin unset HISTFILE MAILCHECK; __assay() { builtin return $1; }; "
    b"builtin readonly -f __assay\n"
)
_READ: Final = b"builtin read -r -N %d -u 63 __assay_code; "
_UNQUOTE: Final = b'builtin eval "$__assay_code"; '
_BEGIN: Final = b"builtin printf 's%d\\0' >&62; "
_STATUS: Final = b"__assay %d || "  # what `$?` is at first; also with errexit it ends nothing
_RUN: Final = b'builtin eval "$__assay_code" </dev/null >&60 2>&61 60>&- 61>&- 62>&- 63<&-\n'
_END: Final = b"builtin printf '%d %%d %%s %%s\\0' $? $- \"$PWD\" >&62; builtin unset TMOUT\n"
_RESTORE: Final = b'builtin eval "$__assay_code"\n'
_SAVE: Final = (
    b"builtin unset __assay_code; { builtin umask -p; "
    b"builtin printf 'builtin cd -- %q\\n' \"$PWD\"; builtin shopt -p; builtin declare -p; "
    b"builtin declare -f; builtin declare -F; builtin trap -p; "
    b"builtin printf '%s ' set -- \"${@@Q}\"; builtin echo; builtin set +o; "
    b"builtin shopt -p expand_aliases; builtin alias -p; } >&62; builtin printf '\\0' >&62\n"
)
# Variables and options that are the shell's own; to set them breaks some of them, or the shell.
_OWN: Final = re.compile(
    rb"^declare -\S+ (?:BASH|BASHOPTS|BASHPID|BASH_\w+|COMP_WORDBREAKS|DIRSTACK|EPOCH\w+|EUID"
    rb"|FUNCNAME|GROUPS|HIST\w+|LINENO|PIPESTATUS|PPID|PS1|PS2|RANDOM|SECONDS|SHELLOPTS|SRANDOM"
    rb"|UID|_|__assay_\w+)(?:=.*)?\n"
    rb"|^set [+-]o (?:emacs|vi|history|histexpand|noexec|onecmd)\n",
    re.MULTILINE,
)
_UNSAFE: Final = re.compile(rb"[\x00-\x1f'\\\x7f-\xff]")
_ENDS_SHELL: Final = re.compile(r"\bset\s+-(?:\w*e|o\s+errexit)|\bexit\b|\bexec\b")
_PATIENCE_MS: Final = 300
_SAVE_MS: Final = 10_000
_MAX_WORD: Final = 64 * 2**10
_REMINDERS: Final = 20
_REST_TRIES: Final = 500
_REST_S: Final = 0.002


class _Ended(Exception):
    """The shell's process has ended, with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Shell:
    """A running bash, and our ends of its pipes."""

    def __init__(self, path: str, environment: dict[str, str]) -> None:
        lines, self._lines = os.pipe()
        code, self._code = os.pipe()
        self._says, says = os.pipe()
        nothing = os.open(os.devnull, os.O_WRONLY)
        handed = ((1, _OUT), (2, _ERR), (says, _SAYS), (code, _CODE), (lines, 0))
        self.outputs = _outputs()
        try:
            self.pid = os.posix_spawn(
                path,
                _ARGUMENTS,
                environment,
                file_actions=[
                    *((os.POSIX_SPAWN_CLOSE, number) for number in _inheritable()),
                    *((os.POSIX_SPAWN_DUP2, ours, its) for ours, its in handed),
                    *((os.POSIX_SPAWN_DUP2, nothing, number) for number in (1, 2)),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=(SIGINT, SIGPIPE, SIGXFSZ, SIGTERM),
            )
        finally:
            for descriptor in (lines, code, says, nothing):
                os.close(descriptor)
        self._ends = os.pidfd_open(self.pid)
        self._poll = poll()
        self._poll.register(self._says, POLLIN)
        self._poll.register(self._ends, POLLIN)
        self._heard = b""
        self.tell(_START)

    def tell(self, line: bytes, text: bytes | None = None) -> None:
        """Gives it a line of ours, and a text that the line finds in a variable.

        Raises:
            _Ended: it has ended.
        """
        reading, text = (b"", b"") if text is None else _handed(text)
        try:
            _write(self._lines, reading + line)
            _write(self._code, text)
        except BrokenPipeError:
            raise _Ended(self.close()) from None

    def hear(self, wait_ms: int, most: int = _MAX_WORD) -> bytes | None:
        """The next word from it; None for none in time.

        Raises:
            _Ended: it has ended.
        """
        while b"\0" not in self._heard:
            ready = [descriptor for descriptor, _ in self._poll.poll(wait_ms)]
            if not ready:
                return None
            if self._says in ready:
                more = os.read(self._says, 1 << 16)
                self._heard = self._heard[-most:] + more
                if not more:  # it ends, or has become another program
                    self._poll.unregister(self._says)
            else:
                raise _Ended(self.close())
        word, _, self._heard = self._heard.partition(b"\0")
        return word

    def has_ended(self) -> bool:
        """Whether its process is dead."""
        return any(descriptor == self._ends for descriptor, _ in self._poll.poll(0))

    def opened(self) -> list[str]:
        """Files that cells have opened in it to stay open."""
        self._await_rest()
        found, folder = [], f"/proc/{self.pid}/fd"
        for number in map(int, os.listdir(folder)):
            try:
                target = os.readlink(f"{folder}/{number}")
            except FileNotFoundError:
                continue  # it was the shell's own, for the line that it was at
            if not (number < 3 or _OUT <= number <= _CODE or target == os.devnull):
                found.append(f"a descriptor of the shell ({number}, {os.path.basename(target)})")
        return found

    def _await_rest(self) -> None:
        """Waits a little until it sleeps.

        A word is heard before the shell has closed what it said it through.
        """
        for _ in range(_REST_TRIES):
            with open(f"/proc/{self.pid}/stat", errors="replace") as file:
                state = file.read().rpartition(")")[2].split()[0]
            if state not in "RD":
                return
            sleep(_REST_S)

    def interrupt(self) -> None:
        """SIGINT to the shell and what runs in its foreground."""
        _signal_group(self.pid)

    def close(self) -> int:
        """Kills it, where it lives, without a word of its own; its exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        for descriptor in (self._lines, self._code, self._says, self._ends):
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


class BashShell:
    """Runs cells of bash; the working directory is the process's at first."""

    def __init__(self) -> None:
        self._path = next(filter(os.path.exists, _PATHS), _PATHS[0])
        self._folder = os.getcwd()
        self._state: bytes | None = None
        self._seed: int | None = None
        self._sessions: set[int] = set()
        self._status = 0
        self._errexit = False
        self._begun = self._interrupted = False
        self._passed_on = 0
        self._shell: _Shell | None = None
        self._start()

    def run(self, code: str, number: int, show: Callable[[Bundle], None]) -> CellOutcome:
        """Runs a cell; see `Interpreter`. Shows nothing."""
        self._begun = self._interrupted = False
        self._passed_on = 0
        before = set_signal(SIGINT, self._interrupt)
        saved = False
        try:
            shell = self._ready_shell()
            if _ENDS_SHELL.search(code) or self._errexit:
                self._state, saved = self._save(shell), True
            end = _END % number
            before_it = _STATUS % self._status if self._status else b""
            shell.tell(
                _BEGIN % number + before_it + _RUN + end, code.encode("utf-8", "surrogatepass")
            )
            status = self._await_end(shell, number, end)
            if self._passed_on:
                self._settle(shell, number)
        except _Ended as ended:
            self._shell = None
            self._say_so(saved=saved)
            return CellOutcome("exited", ended.code)
        finally:
            set_signal(SIGINT, before)
        return CellOutcome("interrupted" if self._passed_on else "completed", status)

    def holds(self) -> list[str]:
        """See `Interpreter`."""
        found = [f"a background job ({name})" for name in self._jobs()]
        return found + ([] if self._shell is None else self._shell.opened())

    def before_copy(self) -> None:
        """Saves the shell's state and ends it: a copy would lose it."""
        if self._shell is None:
            return
        try:
            self._state = self._save(self._shell)
            self._shell.close()
        except _Ended:
            self._say_so(saved=False)
        self._shell = None

    def after_copy(self, *, is_copy: bool) -> None:
        """See `Interpreter`. The next cell begins the new shell."""
        if is_copy:
            self._sessions.clear()

    def reseed(self, seed: int) -> None:
        """See `Interpreter`: gives RANDOM another state."""
        self._seed = seed % 2**31

    def _start(self) -> _Shell:
        """A new shell, in the state that was saved."""
        state = self._state
        # With a state, all that is exported comes from it, and nothing that has been unset.
        environment = dict(os.environ) if state is None else {}
        folder = os.getcwd()
        try:
            os.chdir(self._folder)
        except OSError:
            self._folder = folder  # it is gone
        try:
            self._shell = shell = _Shell(self._path, environment)
        finally:
            os.chdir(folder)
        self._sessions.add(shell.pid)
        if state is not None:
            shell.tell(_RESTORE, state)
        shell.tell(b"RANDOM=%d\n" % crc32(state or b""))
        return shell

    def _ready_shell(self) -> _Shell:
        shell = self._shell
        if shell is not None and shell.has_ended():
            shell.close()
            self._state = None
            self._say_so(saved=False)
            shell = self._shell = None
        if shell is not None and shell.outputs != _outputs():
            self.before_copy()
            shell = self._shell
        if shell is None:
            shell = self._start()
        if self._seed is not None:
            shell.tell(b"RANDOM=%d\n" % self._seed)
            self._seed = None
        return shell

    def _await_end(self, shell: _Shell, number: int, end: bytes) -> int:
        """The status of the cell, once it has ended."""
        began, ended = b"s%d" % number, b"%d " % number
        reminders = 0
        while True:
            word = shell.hear(_PATIENCE_MS)
            if word is None:
                if self._passed_on and reminders < _REMINDERS:
                    # It came before what is to end had begun; or that has a group of its own; or
                    # the shell was just reading the line that reports the end, and forgot it.
                    if reminders % 2:
                        shell.tell(b"\n" + end)
                    else:
                        self._interrupt_all(shell)
                    reminders += 1
            elif word == began:
                self._begun = True
                if self._interrupted:
                    self._pass_on()
            elif word.startswith(ended):
                status, _, rest = word[len(ended) :].partition(b" ")
                if status.isdigit():
                    options, _, folder = rest.partition(b" ")
                    self._errexit, self._folder = b"e" in options, os.fsdecode(folder)
                    self._status = int(status) & 0xFF
                    return self._status

    def _settle(self, shell: _Shell, number: int) -> None:
        """Waits until the shell has taken every interrupt: one makes it forget a line of ours."""
        self._begun = False
        for attempt in range(_REMINDERS):
            said = b"y%d.%d" % (number, attempt)
            shell.tell(b"\nbuiltin printf '%s\\0' >&62\n" % said)
            word = shell.hear(_PATIENCE_MS)
            while word is not None and word != said:
                word = shell.hear(_PATIENCE_MS)
            if word == said:
                self._interrupt_left(shell)
                return
            # It came as the cell began a program, which has not had it and is waited for.
            self._interrupt_all(shell)
        raise _Ended(shell.close())

    def _interrupt(self, number: int, frame: Any) -> None:
        self._interrupted = True
        if self._begun:
            self._pass_on()

    def _pass_on(self) -> None:
        self._passed_on += 1
        if self._shell is not None:
            self._shell.interrupt()

    def _interrupt_all(self, shell: _Shell) -> None:
        shell.interrupt()
        for pid, group, _ in self._processes():
            if pid == group and pid not in self._sessions:
                _signal_group(group)

    def _interrupt_left(self, shell: _Shell) -> None:
        """SIGINT to a program that the cell began as it came, and that nobody waits for.

        It has a little while to end. Background jobs are in the same group, and ignore it.
        """
        reached = set()
        for pid, group, _ in self._processes():
            if group == shell.pid != pid and not _ignores_interrupts(pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, SIGINT)
                    reached.add(pid)
        for _ in range(_REST_TRIES):
            if reached.isdisjoint(pid for pid, _, _ in self._processes()):
                return
            sleep(_REST_S)

    def _save(self, shell: _Shell) -> bytes | None:
        shell.tell(_SAVE)
        while True:
            word = shell.hear(_SAVE_MS, 1 << 30)
            if word is None or word.startswith(b"umask"):
                break
        return None if word is None else _OWN.sub(b"", word)

    def _say_so(self, *, saved: bool) -> None:
        kept = "as it was before this cell" if saved else "without what the last one knew"
        self._status = 0
        if not saved:
            self._state = None
        text = f"the shell has ended; a new one goes on in {self._folder}, {kept}\n"
        _write(2, text.encode("utf-8", "surrogateescape"))

    def _jobs(self) -> list[str]:
        return [name for pid, _, name in self._processes() if pid not in self._sessions]

    def _processes(self) -> list[tuple[int, int, str]]:
        """Living processes of the shells: id, group, name."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat", errors="replace") as file:
                    name, _, rest = file.read().partition("(")[2].rpartition(")")
            except OSError:
                continue
            state, _, group, session, *_ = rest.split()
            if int(session) in self._sessions and state not in "ZX":
                found.append((int(entry), int(group), name))
        return found


def _ignores_interrupts(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/status", errors="replace") as file:
            ignored = file.read().partition("SigIgn:")[2].split()
    except OSError:
        return False
    return bool(ignored) and bool(int(ignored[0], 16) >> (SIGINT - 1) & 1)


def _signal_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, SIGINT)


def _outputs() -> list[tuple[int, int]]:
    """What stdout and stderr are."""
    found = []
    for descriptor in (1, 2):
        try:
            status = os.fstat(descriptor)
            found.append((status.st_dev, status.st_ino))
        except OSError:
            found.append((-1, -1))
    return found


def _handed(text: bytes) -> tuple[bytes, bytes]:
    """What reads a text, and the text as it is read: it counts characters in whatever locale."""
    text = text.replace(b"\0", b"") + b"\n"
    if text.isascii():
        return _READ % len(text), text
    quoted = _UNSAFE.sub(lambda found: b"\\%03o" % found[0][0], text)
    text = b"__assay_code=$'" + quoted + b"'"
    return _READ % len(text) + _UNQUOTE, text


def _inheritable() -> list[int]:
    """Descriptors that a program started here would get, besides the first three."""
    numbers = [int(entry) for entry in os.listdir("/proc/self/fd")]
    found = []
    for number in numbers:
        try:
            if number > 2 and os.get_inheritable(number):
                found.append(number)
        except OSError:
            continue  # the listing's own
    return found


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def warm_up() -> None:
    """Runs a cell in a shell of its own, so that the first of a copy costs less."""
    shell = BashShell()
    shell.run(":", 1, lambda _: None)
    shell.before_copy()
