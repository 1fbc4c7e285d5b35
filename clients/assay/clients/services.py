"""Services as child processes: for commands without a target, for `assay up`, for tests.

A service is found in the entry-point group `assay.services`, started as `python -m PACKAGE`, and
ready when it prints its line "... ready on HOST:PORT". It is stopped by SIGTERM, then SIGKILL, of
its own process id, and stops by itself when this process is gone. A service that dies is not
restarted; `dead()` reports it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from assay.kit.errors import ConfigError, StartupError
from assay.kit.pool.places import GROUP as PLACE_GROUP
from assay.kit.pool.places import RAY_PLUG_IN

GROUP = "assay.services"
VERIFIER_GROUP = "assay.verifiers"
BACKEND_GROUP = "assay.sandbox_backends"
PACKAGES = {
    "reward": "assay-rl-reward-server",
    "sandbox": "assay-rl-sandbox",
    "genrm": "assay-rl-genrm",
}
VERIFIERS_EXTRA = "assay-rl-verifiers-extra"
EXTRA_VERIFIERS: Mapping[str, tuple[str, ...]] = {
    "abstention": (),
    "arc": ("arc-agi",),
    "assignment": ("knights-and-knaves", "zebra"),
    "boxes": ("grounding",),
    "chemistry": (),
    "citations": ("citation-if",),
    "count": ("counting",),
    "countdown": (),
    "decomposition": ("apex-searcher",),
    "differences": ("spot-the-difference",),
    "game24": (),
    "grid-puzzle": (),
    "ifeval": ("ifbench", "if-rlvr", "instruction-following"),
    "language": (),
    "math-verify": (),
    "path-coverage": (),
    "plan-execute": ("e2c",),
    "point": ("pointing",),
    "quantity": ("physics",),
    "question-item": ("bmgq",),
    "reasoning-gym": (),
    "refusal": (),
    "search-qa": ("search-r1",),
    "structure": ("teds",),
    "sudoku": (),
}
"""The verifiers of assay-rl-verifiers-extra, and their tasks of other names."""
_EXTRAS = {
    "math-verify": ("math-verify", "math_verify"),
    "reasoning-gym": ("puzzles", "reasoning_gym"),
}
"""Those whose library an extra of that package brings: the extra, and the library's module."""
ASKED_SERVICES: Mapping[str, str] = {
    **dict.fromkeys(("code", "sql", "text-to-sql", "proof", "theorem-proving"), "sandbox"),
    **dict.fromkeys(("verilog", "verilog-equivalence"), "sandbox"),
    **dict.fromkeys(("judge", "judge-attempt", "judge-refusal", "judge-pairwise"), "genrm"),
    **dict.fromkeys(("judge-group", "rubric", "reward-model", "prm"), "genrm"),
}
"""Verifiers and tasks for which the reward server asks another service."""
PLUG_INS = {
    "assay-rl-compat": "formats over HTTP: SandboxFusion's and Piston's to the sandbox, "
    "OpenRLHF's, slime's, NeMo Gym's and the OpenAI graders' to the reward server",
    "assay-rl-docker-backend": "back ends of the sandbox, a container for each program: "
    "--backend docker, and runsc for gVisor",
    RAY_PLUG_IN: "the workers of the reward server and the sandbox on a Ray cluster (--pool ray)",
    VERIFIERS_EXTRA: f"the verifiers {', '.join(EXTRA_VERIFIERS)}",
}
"""Distributions that add to services, and what each adds."""
_FOLDERS = {
    "assay-rl-compat": "plugins/compat",
    "assay-rl-docker-backend": "plugins/docker_backend",
    RAY_PLUG_IN: "plugins/ray_pool[ray]",
    "assay-rl-reward-server": "reward_server",
    "assay-rl-sandbox": "sandbox",
    "assay-rl-genrm": "genrm",
    "assay-rl-trainer": "trainer",
    VERIFIERS_EXTRA: "plugins/verifiers_extra",
}
_BESIDE = {"assay-rl-reward-server": "./math "}  # no index has what else of ours it needs
DEFAULT_PORTS = {"reward": 50051, "sandbox": 50052, "genrm": 50053}

_READY = re.compile(r"^assay \S+ ready on (\S+:\d+)\s*$", re.MULTILINE)
_METRICS = re.compile(r"^assay \S+ metrics on (\S+:\d+)\s*$", re.MULTILINE)
# Which services' addresses a service gets. The reward server starts last: it asks the others.
_ADDRESSES_FOR = {"reward": ("sandbox", "genrm"), "genrm": ("reward",)}
# Where a client of this machine finds what is bound everywhere.
_HERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  # what is bound, not to bind
_POLL_S = 0.02
_KILL_WAIT_S = 10.0


def installed_services() -> dict[str, EntryPoint]:
    """The services of this environment, by name, sorted."""
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name)}


def installed_plug_ins() -> list[str]:
    """The distributions here that add to services: ours, and whoever brings an entry point."""
    brought = {
        entry.dist.name
        for group in (VERIFIER_GROUP, BACKEND_GROUP, PLACE_GROUP)
        for entry in entry_points(group=group)
        if entry.dist
    }
    return sorted(brought.union(filter(_is_installed, PLUG_INS)))


def absent_plug_ins() -> Iterator[str]:
    """A sentence for each plug-in that is not installed here."""
    for package, adds in PLUG_INS.items():
        if not _is_installed(package):
            yield f"{package} would add {adds}; {how_to_install(package)}"


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def how_to_install(package: str) -> str:
    """The command that installs a package, from a checkout: none of ours is on an index."""
    folder = _FOLDERS.get(package.replace("_", "-"))
    path = f"'./{folder}'" if "[" in str(folder) else f"./{folder}"
    where = f"in a checkout of Assay, run: pip install {_BESIDE.get(package, '')}{path}"
    return where if folder else f"run: pip install {package}"


def what_would_add_verifiers(served: Collection[str]) -> str:
    """What to install for our verifiers that are not served; empty when all are."""
    missing = [name for name in EXTRA_VERIFIERS if name not in served]
    if not missing:
        return ""
    return f"{VERIFIERS_EXTRA} would add {', '.join(missing)}; {how_to_install(VERIFIERS_EXTRA)}"


def who_brings(name: str) -> str:
    """What to start or install for a verifier or task of this name, to append to a message."""
    if name in ASKED_SERVICES:
        service = ASKED_SERVICES[name]
        said = (
            f"; it needs the service {service}, and this server runs without it: run `assay up`, "
            f"which starts all services, or start the reward server with --{service}-target"
        )
        return said if service in installed_services() else f"{said}; {_why_absent(service)}"
    if name not in EXTRA_VERIFIERS and not any(name in tasks for tasks in EXTRA_VERIFIERS.values()):
        return ""
    if name in _EXTRAS:
        extra, _ = _EXTRAS[name]
        brought, how = f"[{extra}]", how_to_add(extra, [VERIFIERS_EXTRA])
    else:
        brought, how = "", how_to_install(VERIFIERS_EXTRA)
    return f"; it comes with {VERIFIERS_EXTRA}{brought}, beside the server; {how}"


def absent_library(name: str) -> str:
    """Why a server of this environment cannot judge by a verifier of ours; empty where it can."""
    extra, module = _EXTRAS.get(name, ("", ""))
    if not module or find_spec(module) is not None:
        return ""
    return f"{module} is not installed here; {how_to_add(extra, [VERIFIERS_EXTRA])}"


def how_to_add(extra: str, packages: Iterable[str]) -> str:
    """The command that installs an extra of several of our packages."""
    wanted = " ".join(
        f"{_BESIDE.get(package, '')}'./{_FOLDERS[package]}[{extra}]'" for package in packages
    )
    return f"in a checkout of Assay, run: pip install {wanted}"


def package_of(name: str) -> str:
    """The package that `python -m` runs for a service.

    Raises:
        ConfigError: The service is unknown or not installed; the text names the pip package.
    """
    entry = installed_services().get(name)
    if entry is None:
        raise ConfigError(_why_absent(name))
    return entry.module.removesuffix(".__main__")


def _why_absent(name: str) -> str:
    if name not in PACKAGES:
        return f"no service has the name {name!r}; choose one of {', '.join(PACKAGES)}"
    package = PACKAGES[name]
    try:
        found = version(package)
        return f"{package} {found} brings no service {name!r}; {how_to_install(package)}"
    except PackageNotFoundError:
        absent = f"the service {name!r} comes with {package}, which is not installed here"
        return f"{absent}; {how_to_install(package)}"


def _prefix(name: str) -> str:
    """The prefix of a service's environment variables."""
    return f"ASSAY_{name.upper()}_"


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    out_file: Path
    err_file: Path

    def address(self, line: re.Pattern[str]) -> str | None:
        found = line.search(self.out_file.read_text(errors="replace"))
        return found.group(1) if found else None

    def last_words(self) -> str:
        lines = self.err_file.read_text(errors="replace").split("\n")
        return next(
            (line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing to stderr"
        )


class EmbeddedServices:
    """Services that run for as long as this context.

    Args:
        names: which services.
        arguments: further command-line arguments, by service.
        ports: by service; a service not named takes a free one.
        host: the address to listen on.
        use_settings: the services read ASSAY_NAME_... of the environment, as when started by hand.
            Without it, an operator's token or certificate cannot lock this process out.
        log_dir: keeps their output, as NAME.out and NAME.err. None: a temporary folder.
        start_timeout_s: for each of two stages: the reward server starts when the others are ready.
        stop: once it is set, a start that is under way is given up.
    """

    def __init__(
        self,
        names: Sequence[str] = ("reward",),
        *,
        arguments: Mapping[str, Sequence[str]] | None = None,
        ports: Mapping[str, int] | None = None,
        host: str = "127.0.0.1",
        use_settings: bool = False,
        log_dir: Path | None = None,
        start_timeout_s: float = 120.0,
        stop: threading.Event | None = None,
    ) -> None:
        self.addresses: dict[str, str] = {}
        self._names = tuple(names)
        self._arguments = arguments or {}
        self._ports = ports or {}
        self._host = host
        self._use_settings = use_settings
        self._log_dir = log_dir
        self._temporary: Path | None = None
        self._start_timeout_s = start_timeout_s
        self._stop = stop or threading.Event()
        self._children: dict[str, _Child] = {}

    def __enter__(self) -> EmbeddedServices:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts every service and returns when all are ready. Stops all of them if one fails.

        Raises:
            ConfigError: A service is unknown or not installed.
            StartupError: A service ended (the text has its last line on stderr), or was not ready
                in time, or the start was given up.
        """
        for name in self._names:
            package_of(name)
        try:
            for stage in self._stages():
                deadline_s = time.monotonic() + self._start_timeout_s
                self._launch(stage)
                for name in stage:
                    self.addresses[name] = self._wait_ready(name, deadline_s)
        except BaseException:
            self.stop()
            raise

    def launch(self) -> None:
        """Begins the processes that need no other's address, and returns at once; `start` waits.

        Raises:
            ConfigError: A service is unknown or not installed.
        """
        self._launch(next(stage for stage in self._stages() if stage))

    def _stages(self) -> tuple[list[str], list[str]]:
        """Who starts first, and who is told the addresses of those."""
        first = [name for name in self._names if name in _ADDRESSES_FOR["reward"]]
        return first, [name for name in self._names if name not in first]

    def _launch(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._children:
                self._children[name] = self._spawn(name, package_of(name))

    def stop(self, grace_s: float = 12.0) -> None:
        """Stops every service: SIGTERM, after `grace_s` seconds SIGKILL. May be called twice."""
        children, self._children = self._children, {}
        self.addresses.clear()
        for child in children.values():
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
        deadline_s = time.monotonic() + grace_s
        for child in children.values():
            try:
                child.process.wait(max(0.0, deadline_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait(_KILL_WAIT_S)
            if child.process.stdin is not None:
                child.process.stdin.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    @property
    def address(self) -> str:
        """The reward server's "host:port".

        Raises:
            ConfigError: It was not started here.
        """
        return self.address_of("reward")

    def address_of(self, name: str) -> str:
        """A service's "host:port".

        Raises:
            ConfigError: It was not started here.
        """
        if name not in self.addresses:
            raise ConfigError(
                f"the service {name!r} was not started; name it in EmbeddedServices(...)"
            )
        return self.addresses[name]

    def metrics_address_of(self, name: str) -> str | None:
        """Where a service that was started here shows its metrics; None for nowhere."""
        return self._children[name].address(_METRICS)

    def pid(self, name: str = "reward") -> int:
        """The process id of a service that was started here."""
        return self._children[name].process.pid

    def dead(self) -> dict[str, str]:
        """Services that ended by themselves, with their last line on stderr."""
        return {
            name: child.last_words()
            for name, child in self._children.items()
            if child.process.poll() is not None
        }

    def _spawn(self, name: str, package: str) -> _Child:
        folder = self._folder()
        out_file, err_file = folder / f"{name}.out", folder / f"{name}.err"
        command = [sys.executable, "-m", "assay.kit.child", package]
        command += ["--host", self._host, "--port", str(self._ports.get(name, 0))]
        command += self._arguments.get(name, ())
        command += self._flags_of_others(name)
        with out_file.open("wb") as out, err_file.open("wb") as err:
            process = subprocess.Popen(  # noqa: S603  # our own interpreter and package
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=self._environment(name),
                start_new_session=True,
            )
        return _Child(process, out_file, err_file)

    def _flags_of_others(self, name: str) -> list[str]:
        """The flags with the addresses of other services that are known when this one starts."""
        flags = []
        for other in _ADDRESSES_FOR.get(name, ()):
            flag, setting = f"--{other}-target", f"{_prefix(name)}{other.upper()}_TARGET"
            given = any(text.startswith(flag) for text in self._arguments.get(name, ()))
            address = self._known_address(other)
            if address and not given and not (self._use_settings and setting in os.environ):
                flags += [flag, address]
        return flags

    def _known_address(self, name: str) -> str:
        address = self.addresses.get(name, "")
        if not address and name in self._names and self._ports.get(name):
            host = f"[{self._host}]" if ":" in self._host else self._host
            address = f"{host}:{self._ports[name]}"
        host, _, port = address.rpartition(":")
        return f"{_HERE.get(host, host)}:{port}" if address else ""

    def _environment(self, name: str) -> dict[str, str]:
        settings = _prefix(name)
        kept = {
            k: v for k, v in os.environ.items() if self._use_settings or not k.startswith(settings)
        }
        for other in _ADDRESSES_FOR.get(name, ()):
            token = os.environ.get(f"{_prefix(other)}TOKEN", "")
            if self._use_settings and token and other in self._names:
                kept.setdefault(f"{settings}{other.upper()}_TOKEN", token)
        kept.pop("OTEL_SERVICE_NAME", None)  # ours; in a trace each service has its own name
        return {**kept, "PYTHONUNBUFFERED": "1"}

    def _folder(self) -> Path:
        if self._log_dir is not None:
            self._log_dir.mkdir(parents=True, exist_ok=True)
            return self._log_dir
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="assay-services-"))
        return self._temporary

    def _wait_ready(self, name: str, deadline_s: float) -> str:
        child = self._children[name]
        while (address := child.address(_READY)) is None:
            code = child.process.poll()
            if code is not None:
                raise StartupError(
                    f"the service {name!r} ended with code {code}: {child.last_words()}"
                )
            if time.monotonic() > deadline_s:
                raise StartupError(
                    f"the service {name!r} was not ready within {self._start_timeout_s:g} s: "
                    f"{child.last_words()}"
                )
            if self._stop.wait(_POLL_S):
                raise StartupError(f"the service {name!r} was stopped before it was ready")
        return address
