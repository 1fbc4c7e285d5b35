"""Sessions on this machine: the host's command, how many fit, and the name of this server."""

from __future__ import annotations

import os
import resource
import secrets
import socket
from pathlib import Path

from assay.kit.errors import ConfigError
from assay.kit.pool.link import Command
from assay.kit.pool.places import LOCAL
from assay.kit.process import usable_cores
from assay.sandbox.config import SandboxServerConfig
from assay.sandbox.domain import MIB
from assay.sandbox.sessions.core import SessionSettings
from assay.sandbox.sessions.requests import SessionRules
from assay.sandbox.sessions.service import Sessions
from assay.sandbox.sessions.settings import Allowance, HostSettings
from assay.sandbox.site import SurveyedMachine
from assay.sandbox.workers.place import environment_of_a_supervisor

HOST = "assay.sandbox.sessions.host"
_JAIL = "jail"
_BYTES_A_SESSION = 16 * MIB
_DESCRIPTORS_A_SESSION = 20  # of the host
_SHARE = 2  # of the memory, one part
_FEWEST, _MOST = 8, 4096
_CELLS_PER_CORE = 4
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def open_sessions(config: SandboxServerConfig, site: SurveyedMachine | None) -> Sessions:
    """The sessions of a server, not started yet; `site` is None where programs run elsewhere.

    Raises:
        ConfigError: --max-sessions is more than this process can hold.
    """
    asked = config.sessions
    rules = rules_of(config)
    _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    if asked.max_sessions * _DESCRIPTORS_A_SESSION > descriptors:
        raise ConfigError(
            f"--max-sessions {asked.max_sessions} needs {_DESCRIPTORS_A_SESSION} descriptors for "
            f"each, and a process may have {descriptors}: raise that (ulimit -n), or lower it"
        )
    settings = SessionSettings(
        replica=asked.replica_name or _name(config.port),
        rules=rules,
        places=asked.max_sessions or fitting(usable_memory_bytes(), descriptors),
        per_tenant=asked.sessions_per_tenant,
        cells=asked.session_cells or _CELLS_PER_CORE * usable_cores(),
        waiting_cells=config.runner.queue_items,
        drain_s=asked.session_drain_s,
        layers=() if site is None else site.layers,
    )
    why_not = _why_not(config)
    if why_not or site is None:
        return Sessions(settings, why_not or "programs run on other machines")
    told = HostSettings(
        slot=config.runner.slot_count,
        level=site.level,
        read_only_paths=tuple(site.toolchains.read_only_paths),
        python_packages=config.runner.python_packages,
        families=settings.places,
        spares=asked.session_spares,
        default_limits=rules.usual,
        max_limits=rules.most,
    )
    arguments = ("--settings", told.to_json())
    command = Command("the host of sessions", HOST, arguments, environment_of_a_supervisor())
    return Sessions(settings, command)


def rules_of(config: SandboxServerConfig) -> SessionRules:
    """The limits of sessions; those of a cell are a program's."""
    programs, asked = config.runner.max_limits, config.sessions
    most = Allowance(
        cpu_s=asked.session_max_cpu_s,
        cell_cpu_s=programs.cpu_s,
        cell_wall_s=programs.wall_s,
        memory_bytes=programs.memory_bytes,
        disk_bytes=programs.disk_bytes,
        processes=programs.processes,
        output_bytes=programs.output_bytes,
        max_output_bytes=programs.max_output_bytes,
        checkpoints=asked.session_checkpoints,
    )
    usual = Allowance(cpu_s=asked.session_cpu_s, memory_bytes=asked.session_memory_mb * MIB)
    return SessionRules(usual.capped(most), most, asked.session_lease_s, asked.session_max_lease_s)


def fitting(memory_bytes: int, descriptors: int) -> int:
    """How many sessions fit by default, 8 to 4,096.

    One for each 16 MiB of half the memory, and for 20 descriptors that a process may open.
    """
    most = min(memory_bytes // _SHARE // _BYTES_A_SESSION, descriptors // _DESCRIPTORS_A_SESSION)
    return min(_MOST, max(_FEWEST, most))


def usable_memory_bytes() -> int:
    """Memory of this machine, or of this container where that is less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in _GROUP_LIMITS:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found)


def _why_not(config: SandboxServerConfig) -> str:
    if not config.sessions.sessions:
        return "the operator turned them off (--no-sessions)"
    if config.runner.pool != LOCAL:
        return f"--pool {config.runner.pool} runs programs on other machines, sessions on none"
    if config.runner.backend != _JAIL:
        return f"--backend {config.runner.backend} keeps none, the jail does"
    return ""


def _name(port: int) -> str:
    host = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in _host())
    return f"{host[:60]}:{port or secrets.token_hex(3)}"


def _host() -> str:
    return socket.gethostname() or "sandbox"
