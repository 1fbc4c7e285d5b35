"""`assay doctor`: a report on this machine and its services."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    distributions,
    entry_points,
    version,
)
from importlib.util import find_spec
from typing import Any

import click
import grpc
from rich.console import Console
from rich.text import Text

import assay
from assay.cli.certificates import read_certificate
from assay.cli.commands import stalls
from assay.cli.commands.options import read_server, server_options
from assay.clients.execution import ExecutionClient
from assay.clients.judging import JudgeClient
from assay.clients.reward import RewardClient
from assay.clients.services import (
    DEFAULT_PORTS,
    PACKAGES,
    PLUG_INS,
    absent_plug_ins,
    how_to_install,
    installed_plug_ins,
    installed_services,
)
from assay.kit import health
from assay.kit.console import make_console
from assay.kit.errors import CallError
from assay.kit.pool.places import RAY_PLUG_IN, installed_places

_LIBRARIES = ("grpcio", "protobuf", "torch", "transformers", "trl")
_POOLED = ("reward", "sandbox")  # services that have --pool
_WAIT_S = 2.0
_RENEW_DAYS = 7
GROUP = "assay.doctor"
_MARKS = {True: ("ok", "green"), False: ("not ok", "bold red"), None: ("", "")}


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """One line of the report: subject, finding, and whether it is fine (None for a mere fact)."""

    what: str
    found: str
    fine: bool | None = None


def look_at_machine() -> list[DoctorFinding]:
    """Python, cores, memory and accelerators."""
    return [
        DoctorFinding("python", platform.python_version()),
        DoctorFinding("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        DoctorFinding("cores", str(len(os.sched_getaffinity(0)))),
        DoctorFinding("memory", f"{_memory_bytes() / 2**30:.1f} GiB"),
        DoctorFinding("accelerators", _accelerators()),
    ]


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _accelerators() -> str:
    if find_spec("torch") is None:
        return "torch is not installed"
    import torch  # noqa: PLC0415  # heavy, and absent where only services run

    if not torch.cuda.is_available():
        return f"none (torch {torch.__version__})"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return f"{', '.join(names)} (torch {torch.__version__})"


def look_at_name(
    package: str | None, found: Iterable[Distribution] | None = None
) -> list[DoctorFinding]:
    """Which distributions of somebody else take the name `assay`.

    Args:
        package: the file of the package `assay`; None: it is a namespace, as ours is.
        found: what is installed; None for all of this environment.
    """
    findings = []
    for one in distributions() if found is None else found:
        name = one.metadata["Name"]
        takes = [str(file) for file in one.files or () if str(file) == "assay/__init__.py"]
        scripts = one.entry_points.select(group="console_scripts", name="assay")
        takes += [f"the command assay ({script.value})" for script in scripts if not _ours(script)]
        if takes:
            text = f"{' and '.join(takes)}, which hides ours: pip uninstall {name}"
            findings.append(DoctorFinding(f"{name} (not of Assay)", text, fine=False))
    if package is not None and not findings:
        text = f"{package} makes it a package, which hides ours: remove it"
        findings.append(DoctorFinding("assay (not of Assay)", text, fine=False))
    return findings


def _ours(script: EntryPoint) -> bool:
    return script.value == "assay.cli.__main__:main"


def look_at_packages() -> list[DoctorFinding]:
    """Versions of the main packages, and the installed services."""
    findings = []
    for name in (
        "assay-api",
        "assay-kit",
        "assay-clients",
        "assay-trainer",
        *PACKAGES.values(),
        *PLUG_INS,
        *_LIBRARIES,
    ):
        try:
            findings.append(DoctorFinding(name, version(name)))
        except PackageNotFoundError:
            findings.append(DoctorFinding(name, "not installed"))
    installed = installed_services()
    services = ", ".join(installed)
    findings.append(
        DoctorFinding(
            "services installed",
            services or f"none; {how_to_install('assay-reward-server')}",
            bool(services),
        )
    )
    findings.append(
        DoctorFinding("plug-ins", "; ".join([*installed_plug_ins(), *absent_plug_ins()]))
    )
    if any(name in installed for name in _POOLED):
        findings.append(DoctorFinding("--pool", f"{', '.join(installed_places())}; {_ray()}"))
    return findings


def _ray() -> str:
    """Ray's version without importing it, which is slow; or what brings it."""
    if find_spec("ray") is None:
        return f"ray is not installed; {how_to_install(RAY_PLUG_IN)}"
    try:
        return f"ray {version('ray')}"
    except PackageNotFoundError:
        return "ray of an unknown version"


def look_at_services() -> list[DoctorFinding]:
    """The findings of the installed services, each by its entry point of `assay.doctor`.

    An entry point is a function without arguments that gives a triple for each line: subject,
    finding, and whether it is fine (None for a mere fact).
    """
    findings = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            findings += [DoctorFinding(*line) for line in entry.load()()]
        except Exception as error:  # noqa: BLE001 - the isolation border: one service's own check
            text = f"its check failed: {type(error).__name__}: {error}"
            findings.append(DoctorFinding(f"{entry.name} here", text, fine=False))
    return findings


async def look_at_ports() -> list[DoctorFinding]:
    """The services at their default ports, and their certificates."""
    findings = []
    for name, port in DEFAULT_PORTS.items():
        address = f"127.0.0.1:{port}"
        state = await health.check(address, timeout_s=_WAIT_S)
        certificate = await asyncio.to_thread(look_at_certificate, address)
        if certificate is None:
            findings.append(DoctorFinding(f"{name} at {address}", state.value))
        else:
            asked = f"it speaks TLS: ask by --target {address} --tls-ca FILE"
            findings += [DoctorFinding(f"{name} at {address}", asked), certificate]
    return findings


def look_at_target(target: str, token_file: str | None, tls_ca: str | None) -> list[DoctorFinding]:
    """Whether a service answers, asked as its clients ask; and its certificate."""
    server = read_server(target, token_file, tls_ca)
    how = {"tls": server.tls, "token": server.token}
    certificate = look_at_certificate(target)
    findings = [] if certificate is None else [certificate]
    failure = ""
    for ask in (_ask_reward, _ask_sandbox, _ask_genrm):
        started_s = time.monotonic()
        try:
            found = ask(server.target, how)
        except CallError as error:
            failure = failure or str(error)
            if error.code is not grpc.StatusCode.UNIMPLEMENTED:
                break
        else:
            wait_ms = (time.monotonic() - started_s) * 1000
            return [
                DoctorFinding(f"target {target}", found, fine=True),
                DoctorFinding(f"target {target}: first answer", f"after {wait_ms:.0f} ms"),
                *findings,
            ]
    return [DoctorFinding(f"target {target}", failure, fine=False), *findings]


def look_at_certificate(target: str) -> DoctorFinding | None:
    """The names and the end of a port's certificate; None where it speaks no TLS.

    The certificate is not verified, so that an expired one is reported too.
    """
    found = read_certificate(target, _WAIT_S)
    if found is None:
        return None
    days = (found.ends - datetime.now(UTC)).total_seconds() / 86400
    until = f"{found.ends:%Y-%m-%d %H:%M} UTC"
    if days < 0:
        text = f"expired on {until}: renew it"
    else:
        text = f"for {', '.join(found.names) or 'no name'}, until {until} ({days:.0f} days)"
    return DoctorFinding(f"certificate of {target}", text, fine=days >= _RENEW_DAYS)


def _ask_reward(target: str, how: dict[str, Any]) -> str:
    with RewardClient(target, **how) as client:
        info = client.wait_ready(_WAIT_S)
    names = ", ".join(verifier.name for verifier in info.verifiers)
    return f"reward server {info.version}, judges: {names}"


def _ask_sandbox(target: str, how: dict[str, Any]) -> str:
    with ExecutionClient(target, **how) as client:
        info = client.wait_ready(_WAIT_S)
    names = ", ".join(language.name for language in info.languages)
    return f"sandbox {info.version}, runs: {names}"


def _ask_genrm(target: str, how: dict[str, Any]) -> str:
    with JudgeClient(target, **how) as client:
        info = client.wait_ready(_WAIT_S)
    judges = {model.name for model in info.models}
    names = sorted(judges | {model.name for model in info.process_models})
    return f"judge service {info.version}, models: {', '.join(names)}"


def show(findings: Sequence[DoctorFinding], console: Console) -> None:
    """Prints a line for each finding, whole: what it says to type can be copied."""
    width = max((len(finding.what) for finding in findings), default=0)
    for finding in findings:
        mark, style = _MARKS[finding.fine]
        text = f"{finding.what:<{width}}  {' '.join(finding.found.split())}"
        console.print(Text.assemble((f"{mark:<8}", style), text), soft_wrap=True)


@click.command()
@server_options
@click.option(
    "--metrics",
    multiple=True,
    metavar="HOST:PORT",
    help="Where a service shows its metrics (--metrics-port): looked at twice, for what stalls "
    "rewards; repeatable.",
)
@click.option(
    "--watch-s",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Seconds between the two looks.",
)
def doctor(
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    metrics: tuple[str, ...],
    watch_s: float,
) -> int:
    """Report what this machine has, which services answer, and what stalls them.

    The exit code is 1 when something is not as it should be; a certificate that ends within a week
    is not.
    """
    # The services first: some look at the kernel, which wants a process without threads.
    services = look_at_services()
    findings = look_at_machine() + look_at_name(getattr(assay, "__file__", None))
    findings += look_at_packages() + services + asyncio.run(look_at_ports())
    if target:
        findings += look_at_target(target, token_file, tls_ca)
    findings += [DoctorFinding(*line) for line in stalls.look_at(metrics, time.sleep, watch_s)]
    show(findings, make_console(highlight=False))
    return int(any(finding.fine is False for finding in findings))
