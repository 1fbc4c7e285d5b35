"""`python -m assay.sandbox`: flags and environment in, a running server out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from assay.kit import tracing
from assay.kit.access import take_access
from assay.kit.errors import AssayError
from assay.kit.flags import access_flags, http_flags, pool_flags, take_http
from assay.kit.logs import setup_logging
from assay.kit.process import read_token
from assay.kit.settings import fail, print_asked, settings_flags
from assay.sandbox.config import (
    DEFAULT_PORT,
    ENVIRONMENT_PREFIX,
    FLOORS,
    SandboxConfig,
    SandboxServerConfig,
    SessionsConfig,
)
from assay.sandbox.server import run

_RUNNER = SandboxConfig()
_RUNNER_FLAGS = [field.name for field in fields(SandboxConfig)]
_SESSIONS = SessionsConfig()
_SESSIONS_FLAGS = [field.name for field in fields(SessionsConfig)]
_PATH = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_TITLE = "sandbox"
_LEVELS = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False)
_MOST = (
    ("max-cpu-s", float, "The most CPU time that a job may ask for."),
    ("max-wall-s", float, "The most time on the clock."),
    ("max-memory-mb", int, "The most memory, in MiB."),
    ("max-output-mb", int, "The most kept of stdout, and of stderr, in MiB."),
    ("max-written-mb", int, "The most written to stdout, and to stderr, in MiB."),
    ("max-disk-mb", int, "The most on disk, in MiB."),
    ("max-processes", int, "The most processes and threads."),
    ("max-compile-s", float, "The most time for a compilation."),
)


_OF_SESSIONS = (
    ("max-sessions", int, "Sessions open at once; 0: one per 16 MiB of half the memory."),
    ("sessions-per-tenant", int, "Of these, one tenant's; 0: no limit."),
    ("session-cells", int, "Cells that compute at once; 0: four per core."),
    ("session-spares", int, "Sessions that wait ready to be taken."),
    ("session-lease-s", float, "How long a session lives unused, where nobody says it."),
    ("session-max-lease-s", float, "The longest that a caller may ask for."),
    ("session-cpu-s", float, "CPU time over a session's life, where nobody says it."),
    ("session-max-cpu-s", float, "The most that a caller may ask for."),
    ("session-memory-mb", int, "MiB of a session, where nobody says it."),
    ("session-checkpoints", int, "The most that a session may hold."),
    ("session-drain-s", float, "How long sessions may go on at the end, before the drain."),
    ("replica-name", str, "Clients come back by it. [default: the host's name and the port]"),
)


def _options(config: object, table: Sequence[tuple[str, type, str]]) -> Callable[[Any], Any]:
    def add(command: Any) -> Any:
        for flag, kind, text in reversed(table):
            default = getattr(config, flag.replace("-", "_"))
            command = click.option(f"--{flag}", type=kind, default=default, help=text)(command)
        return command

    return add


@click.command(context_settings={"auto_envvar_prefix": ENVIRONMENT_PREFIX, "show_default": True})
@settings_flags(click.option, _PATH, click.BadParameter, _TITLE, ("TOKEN",))
@click.option("--host", default="127.0.0.1", help="Address to bind.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, help="0: any free port."
)
@click.option("--port-file", type=_PATH, help="Write the port here when ready.")
@click.option(
    "--slots", type=int, default=_RUNNER.slots, help="Programs at the same time; 0: one per core."
)
@pool_flags(click.option, "Where programs run: local, or a place that a plug-in brings.")
@click.option("--languages", default="", help="Serve these, by comma. Empty: all that work here.")
@click.option(
    "--python-packages",
    default=",".join(_RUNNER.python_packages),
    help="Python programs may import these, by comma.",
)
@click.option(
    "--isolation-floor",
    type=click.Choice(FLOORS),
    default=_RUNNER.isolation_floor,
    help="Refuse to serve with weaker isolation; strongest first.",
)
@click.option(
    "--backend",
    default=_RUNNER.backend,
    help="What isolates: jail, or a back end that is installed (docker, runsc).",
)
@click.option("--image", default=_RUNNER.image, help="Container image, for docker and runsc.")
@click.option("--queue-items", type=int, default=_RUNNER.queue_items, help="Jobs that may wait.")
@click.option("--queue-mb", type=int, default=_RUNNER.queue_mb, help="MiB that they may hold.")
@click.option("--cache-dir", type=_FOLDER, help="Keep compiled programs here. [default: ~/.cache]")
@click.option(
    "--cache-mb", type=int, default=_RUNNER.cache_mb, help="MiB of compiled programs; 0: none."
)
@_options(_RUNNER, _MOST)
@click.option("--sessions/--no-sessions", default=_SESSIONS.sessions, help="Keep sessions.")
@_options(_SESSIONS, _OF_SESSIONS)
@http_flags(click.option, click.IntRange(0, 65535))
@access_flags(click.option, _PATH)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Show metrics over HTTP; 0: any free port.",
)
@click.option("--metrics-host", default="127.0.0.1", help="Address to bind for metrics.")
@click.option("--drain-s", type=click.FloatRange(min=0), default=10.0, help="Time to end calls.")
@click.option("--log-level", type=_LEVELS, default="INFO", help="Least level that is logged.")
@click.option("--log-json/--log-text", default=False, help="Form of the logs, which go to stderr.")
@click.pass_context
def cli(
    context: click.Context,
    /,
    *,
    log_level: str,
    log_json: bool,
    token_file: Path | None,
    languages: str,
    python_packages: str,
    **flags: Any,
) -> None:
    """Run untrusted programs over gRPC, and over HTTP/JSON where --http-port is given.

    Each flag can be set in the environment as ASSAY_SANDBOX_<FLAG>, and in a file, as --config
    says; a variable ASSAY_SANDBOX_... that is no setting is an error. The bearer token that clients
    must send comes from a file or from ASSAY_SANDBOX_TOKEN, never from a flag, which every user of
    the machine could read. Prints "assay sandbox ready on HOST:PORT" when it serves, and "assay
    sandbox http on HOST:PORT" for HTTP. SIGTERM or Ctrl-C lets running calls end, then stops.
    """
    try:
        if print_asked(context, _TITLE):
            return
        setup_logging(log_level, json=log_json)
        tracing.set_up(_TITLE)
        flags["languages"] = _names(languages)
        flags["python_packages"] = _names(python_packages)
        runner = {name: flags.pop(name) for name in _RUNNER_FLAGS}
        sessions = SessionsConfig(**{name: flags.pop(name) for name in _SESSIONS_FLAGS})
        access = take_access(flags)
        config = SandboxServerConfig(
            SandboxConfig(**runner),
            token=read_token(token_file, f"{ENVIRONMENT_PREFIX}_TOKEN"),
            access=access,
            http=take_http(flags),
            sessions=sessions,
            **flags,
        )
        asyncio.run(run(config))
    except AssayError as error:
        fail(_TITLE, error, context)


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def main() -> None:
    """Runs the command; the entry point of the group assay.services."""
    cli()


if __name__ == "__main__":
    main()
