"""Where the supervisors are: on this machine, or on the nodes of a Ray cluster.

Each node of a cluster is surveyed there (walls, languages), and every language proves itself in a
supervisor of that node. A node below the floor, or without a served language, is refused.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from assay.kit.pool import frames
from assay.kit.pool.link import ChildWorkers, Command, LinkError, LinkLimits, Workers
from assay.kit.pool.places import LOCAL, Ask, Placement, find_place
from assay.sandbox.config import SandboxConfig
from assay.sandbox.languages import MissingLanguage
from assay.sandbox.site import SurveyedMachine, survey
from assay.sandbox.workers import kinds

_SURVEY_S = 360.0  # what speeds compilations up is made in it, once for each node
_LINK = LinkLimits(start_s=60.0, stop_s=20.0)
# What a supervisor may see of our environment: where tools are. Secrets stay here.
_PASSED_ON = (
    *("PATH", "HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "PYTHONPATH"),
    *("JAVA_HOME", "GOROOT", "RUSTUP_HOME", "CARGO_HOME", "DOCKER_HOST", "DOCKER_CERT_PATH"),
    *("DOCKER_TLS_VERIFY",),
)

_log = logging.getLogger(__name__)


class Supervisors:
    """The supervisors of a service.

    Raises:
        ConfigError, StartupError: programs are to run on this machine, and it cannot run them as
            configured. It is surveyed now.

    Attributes:
        workers: the supervisors, for a pool.
    """

    def __init__(self, config: SandboxConfig) -> None:
        self._site: SurveyedMachine | None = None
        self._here = config.pool == LOCAL
        self.workers: Workers
        if self._here:
            self._site = survey(config)
            self.workers = _local(self._site, config)
        else:
            placement = Placement(
                *(config.ray_address, "assay-rl-sandbox", "a supervisor"),
                node=f"{__name__}:open_node",
                settings=config.to_json(),
                start_s=_SURVEY_S,
                accept=self._accept,
            )
            self.workers = find_place(config.pool).workers(placement)

    @property
    def surveyed(self) -> SurveyedMachine | None:
        """This machine; None where programs run on others."""
        return self._site if self._here else None

    @property
    def site(self) -> SurveyedMachine:
        """The surveyed machine; of a cluster the first node's."""
        if self._site is None:
            raise RuntimeError("no node is known yet")
        return self._site

    def _accept(self, about: Mapping[str, Any]) -> str:
        site = SurveyedMachine.from_json(about["site"])
        if self._site is None:
            self._site = site
        lacks = set(self._site.toolchains.found) - set(site.toolchains.found)
        return f"it does not serve {', '.join(sorted(lacks))}" if lacks else ""


def environment_of_a_supervisor() -> dict[str, str]:
    """What a process that isolates programs may see of our environment."""
    return {key: os.environ[key] for key in _PASSED_ON if key in os.environ}


async def open_node(settings: str) -> RunNode:
    """A node of a cluster, for a host on it.

    Raises:
        LinkError: the node is of no use; the text says why.
    """
    return RunNode(await _survey(settings), SandboxConfig.from_json(settings))


class RunNode:
    """The sandbox's part of a node."""

    def __init__(self, site: SurveyedMachine, config: SandboxConfig) -> None:
        self.workers: Workers = _local(site, config)
        self._site = site

    async def about(self, ask: Ask) -> Mapping[str, Any]:
        """The survey, without the languages that fail their self-test here."""
        failed = []
        for name in sorted(self._site.toolchains.found):
            answer = await ask(kinds.PROBE, name.encode())
            why = answer.payload.decode(errors="replace")
            if why or answer.kind != frames.DONE:
                _log.error("%s is not served: %s", name, why)
                failed.append(MissingLanguage(name, why or "it cannot be tested"))
        toolchains = self._site.toolchains.without(failed)
        return {"site": dataclasses.replace(self._site, toolchains=toolchains).to_json()}


def _local(site: SurveyedMachine, config: SandboxConfig) -> ChildWorkers:
    settings = site.settings(config)
    environment = environment_of_a_supervisor()

    def command(slot: int) -> Command:
        told = dataclasses.replace(settings, slot=slot).to_json()
        arguments = ("--settings", told)
        return Command("a supervisor", "assay.sandbox.supervisor", arguments, environment)

    return ChildWorkers(command, _LINK)


async def _survey(config: str) -> SurveyedMachine:
    """Surveys this node, in a process of its own, as this one has Ray's threads.

    Raises:
        LinkError: the node is of no use; the text says why.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "assay.sandbox.site", config),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SURVEY_S):
            out, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        raise LinkError(f"the node was not surveyed within {_SURVEY_S:g} s") from error
    found = json.loads(out.decode() or "{}")
    if "site" not in found:
        raise LinkError(found.get("problem") or "the node cannot be surveyed; see Ray's logs there")
    return SurveyedMachine.from_json(found["site"])
