"""From flags to sessions: where none are kept, what the host is told, and the server's name."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path
from typing import Any

import pytest

from assay.api.session.v1 import session_pb2
from assay.kit.errors import CallError, ConfigError
from assay.sandbox.config import SandboxConfig, SandboxServerConfig, SessionsConfig
from assay.sandbox.domain import MIB
from assay.sandbox.languages import Toolchains
from assay.sandbox.sessions.place import open_sessions, rules_of, usable_memory_bytes
from assay.sandbox.site import SurveyedMachine

SITE = SurveyedMachine("namespaces", ("a-wall",), Toolchains({}, {}), Path("/tmp"))


def config(runner: dict[str, Any] | None = None, **sessions: Any) -> SandboxServerConfig:
    return SandboxServerConfig(
        SandboxConfig(**(runner or {})), sessions=SessionsConfig(**sessions), port=7
    )


@pytest.mark.parametrize(
    ("runner", "sessions", "said"),
    [
        ({}, {"sessions": False}, "--no-sessions"),
        ({"pool": "ray"}, {}, "--pool ray"),
        ({"backend": "docker"}, {}, "--backend docker"),
    ],
)
async def test_where_none_are_kept_it_is_said(
    runner: dict[str, Any], sessions: dict[str, Any], said: str
) -> None:
    made = open_sessions(config(runner, **sessions), None if "pool" in runner else SITE)
    await made.start()
    with pytest.raises(CallError, match=said) as caught:
        await made.create(session_pb2.CreateRequest(), timeout_s=1.0)
    assert caught.value.reason == "NO_SESSIONS"
    request = session_pb2.DescribeSessionsRequest()
    described = await made.describe_sessions(request, timeout_s=1.0)
    assert said in described.no_copies_because
    assert described.capacity == 0
    await made.close()


async def test_a_server_has_the_name_that_it_was_given_or_the_hosts_and_its_port() -> None:
    async def name(**sessions: Any) -> str:
        made = open_sessions(config(sessions=False, **sessions), SITE)
        request = session_pb2.DescribeSessionsRequest()
        return (await made.describe_sessions(request, timeout_s=1.0)).replica

    assert await name(replica_name="blue.7") == "blue.7"
    assert (await name()).endswith(":7")
    assert await name() == await name()  # the same after a restart


def test_limits_of_a_cell_are_a_programs_and_defaults_stay_below_them() -> None:
    rules = rules_of(
        config(
            {"max_wall_s": 9.0, "max_memory_mb": 64}, session_max_cpu_s=700.0, session_cpu_s=30.0
        )
    )
    assert rules.most.cell_wall_s == rules.usual.cell_wall_s == 9.0
    assert rules.most.memory_bytes == rules.usual.memory_bytes == 64 * MIB
    assert (rules.most.cpu_s, rules.usual.cpu_s) == (700.0, 30.0)


def test_more_sessions_than_descriptors_are_refused_at_the_start() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with pytest.raises(ConfigError, match=r"--max-sessions \d+ needs"):
        open_sessions(config(max_sessions=most), SITE)
    assert usable_memory_bytes() > 0


@pytest.mark.parametrize(
    ("wrong", "flag"),
    [
        ({"session_lease_s": 0.0}, "--session-lease-s"),
        ({"session_lease_s": 10.0, "session_max_lease_s": 5.0}, "--session-lease-s"),
        ({"session_cpu_s": 1e9}, "--session-cpu-s"),
        ({"session_max_cpu_s": float("nan")}, "--session-"),
        ({"max_sessions": -1}, "--max-sessions"),
        ({"session_memory_mb": 0}, "--session-memory-mb"),
        ({"session_drain_s": float("inf")}, "--session-drain-s"),
        ({"replica_name": "with space"}, "--replica-name"),
        ({"replica_name": "x" * 81}, "--replica-name"),
    ],
)
def test_a_wrong_setting_names_its_flag(wrong: dict[str, Any], flag: str) -> None:
    with pytest.raises(ConfigError, match=flag):
        SessionsConfig(**wrong)


def test_nothing_is_started_before_it_is_asked() -> None:
    async def made() -> int | None:
        sessions = open_sessions(config(), SITE)
        pid = sessions.host_pid
        await sessions.close()
        return pid

    assert asyncio.run(made()) is None
