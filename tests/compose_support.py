"""The services of compose.yaml as containers, for tests: built, started, looked at, taken down."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WHEELHOUSE = ROOT / "wheelhouse"
SERVICES = ("reward_server", "sandbox", "genrm")
TAG = "test"
"""Of the images, which stay behind: they are the next run's cache."""
CANARY = ("SBX_CANARY", "SBX_CANARY_VALUE")
START_S = 600.0
ENVOY = "assay-envoy:test"
"""Made here of a program of Envoy's, where its own image is not to be had."""
_ENVOY_IMAGE = """
FROM python:3.11-slim-bookworm
COPY envoy /usr/local/bin/envoy
ENTRYPOINT ["/usr/local/bin/envoy"]
"""
_RELAY = """
import asyncio, sys
service, port = sys.argv[1], int(sys.argv[2])
async def copy(reader, writer):
    try:
        while block := await reader.read(65536):
            writer.write(block)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
async def meet(reader, writer):
    try:
        there, back = await asyncio.open_connection(service, port)
    except OSError:
        writer.close()
        return
    await asyncio.gather(copy(reader, back), copy(there, writer))
async def main():
    async with await asyncio.start_server(meet, "0.0.0.0", port) as server:
        await server.serve_forever()
asyncio.run(main())
"""
_OVERRIDE = """
services:
  sandbox:
    environment:
      - {name}={value}
"""


def run(*command: str, limit_s: float = 120.0, **environment: str) -> str:
    """What a command prints on stdout; a failure shows all that it said."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    said = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    assert done.returncode == 0, f"{' '.join(command)} exited with {done.returncode}:\n{said}"
    return done.stdout


def answers(address: tuple[str, int]) -> bool:
    """Whether anybody takes a connection there."""
    try:
        socket.create_connection(address, timeout=5.0).close()
    except OSError:
        return False
    return True


def compose_command() -> list[str]:
    """Compose: what ASSAY_COMPOSE says, else version 2, else version 1.

    Raises:
        LookupError: there is none.
    """
    if named := os.environ.get("ASSAY_COMPOSE"):
        return named.split()
    for command in (["docker", "compose"], ["docker-compose"]):
        found = shutil.which(command[0])
        if found is None:
            continue
        asked = subprocess.run([*command, "version"], capture_output=True, check=False)
        if asked.returncode == 0:
            return command
    raise LookupError("neither `docker compose` nor `docker-compose` is installed")


def missing() -> str:
    """Why the stack cannot be started here; empty when it can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    asked = subprocess.run(["docker", "info"], capture_output=True, text=True, check=False)
    if asked.returncode:
        return f"no Docker daemon answers: {(asked.stderr or asked.stdout).strip()[-200:]}"
    try:
        compose_command()
    except LookupError as error:
        return str(error)
    return ""


def has_image(name: str) -> bool:
    found = subprocess.run(["docker", "image", "inspect", name], capture_output=True, check=False)
    return found.returncode == 0


def envoy_image(folder: Path, program: str | None) -> str:
    """The image of compose.yaml where it is there; else one made of a program of Envoy's.

    Raises:
        LookupError: there is neither.
    """
    text = (ROOT / "compose.yaml").read_text()
    named = text.partition("ASSAY_ENVOY_IMAGE:-")[2].partition("}")[0]
    if has_image(named):
        return named
    if program is None:
        raise LookupError(f"{named} is not there, and no program of Envoy's: `make test-docker`")
    folder.mkdir()
    shutil.copy(program, folder / "envoy")
    (folder / "envoy").chmod(0o755)
    (folder / "Dockerfile").write_text(_ENVOY_IMAGE)
    run("docker", "build", "-t", ENVOY, str(folder), limit_s=600.0)
    return ENVOY


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def until(
    condition: Callable[[], object], limit_s: float, trouble: Callable[[], object] = str
) -> None:
    """Waits until a condition holds."""
    ends_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends_s, f"it did not come to hold in {limit_s:g} s: {trouble()}"
        time.sleep(0.2)


@dataclasses.dataclass(frozen=True)
class Stack:
    """A project of its own name, on a free port, with tokens in files and a canary in the sandbox.

    Attributes:
        project: Compose's name for it.
        folder: secrets/, models/ and the override file are in it.
        port: the published port of the reward server.
        token: what the reward server asks for.
        sandbox_token: what the sandbox asks for.
        models: what genrm serves, as NAME=PATH; empty: genrm is left out.
    """

    project: str
    folder: Path
    port: int
    token: str
    sandbox_token: str
    models: str = ""

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def services(self) -> tuple[str, ...]:
        return SERVICES if self.models else SERVICES[:2]

    @cached_property
    def environment(self) -> Mapping[str, str]:
        found = {
            "ASSAY_PORT": str(self.port),
            "ASSAY_TAG": TAG,
            "ASSAY_SECRETS": str(self.folder / "secrets"),
            "ASSAY_MODELS": str(self.folder / "models"),
            "ASSAY_SANDBOX_SLOTS": "2",
            "ASSAY_SANDBOX_MEMORY": "4g",
            # Nothing of the caller's own settings.
            **dict.fromkeys(("ASSAY_REWARD_TOKEN", "ASSAY_SANDBOX_TOKEN", "ASSAY_GENRM_TOKEN"), ""),
        }
        if self.models:
            found["ASSAY_GENRM_MODEL"] = self.models
            # Random weights judge nothing.
            found |= {"ASSAY_GENRM_SELF_TEST": "false", "ASSAY_GENRM_LEAST_MASS": "0"}
            found["ASSAY_REWARD_GENRM_TARGET"] = "genrm:50053"
        if WHEELHOUSE.is_dir():
            found["ASSAY_WHEELHOUSE"] = WHEELHOUSE.name
        return found

    def prepare(self, genrm_token: str) -> None:
        """Writes the secrets and the override."""
        secrets = self.folder / "secrets"
        secrets.mkdir()
        (self.folder / "models").mkdir(exist_ok=True)
        for name, token in (
            ("reward_token", self.token),
            ("sandbox_token", self.sandbox_token),
            ("genrm_token", genrm_token),
        ):
            (secrets / name).write_text(f"{token}\n")
        name, value = CANARY
        (self.folder / "compose.yaml").write_text(_OVERRIDE.format(name=name, value=value))

    def compose(
        self,
        *arguments: str,
        limit_s: float = 120.0,
        files: Sequence[str] = (),
        profiles: Sequence[str] = (),
        **environment: str,
    ) -> str:
        """What Compose prints; the files, profiles and variables are further ones."""
        named = ("compose.yaml", "compose.secrets.yaml", str(self.folder / "compose.yaml"), *files)
        asked = (*(("genrm",) if self.models else ()), *profiles)
        return run(
            *compose_command(),
            *(word for file in named for word in ("-f", file)),
            *("-p", self.project),
            *(word for profile in asked for word in ("--profile", profile)),
            *arguments,
            limit_s=limit_s,
            **{**self.environment, **environment},
        )

    def build(self) -> None:
        self.compose("build", *self.services, limit_s=3600.0)

    def up(self) -> None:
        """Starts what does not run, and waits until all is healthy."""
        self.compose("up", "-d", "--no-build", limit_s=START_S)
        for service in self.services:
            self.wait_healthy(service)

    def down(self) -> None:
        self.compose("down", "-v", "--remove-orphans", "-t", "5")

    def left(self) -> list[str]:
        """Containers, networks and volumes of this project."""
        label = f"label=com.docker.compose.project={self.project}"
        kinds = (
            ("ps", "-aq"),
            ("network", "ls", "-q"),
            ("volume", "ls", "-q"),
        )
        return [line for kind in kinds for line in self.docker(*kind, "--filter", label).split()]

    @staticmethod
    def docker(*arguments: str, limit_s: float = 120.0) -> str:
        return run("docker", *arguments, limit_s=limit_s)

    def containers(self, service: str) -> list[str]:
        """The ids of a service's containers, also of stopped ones."""
        label = f"label=com.docker.compose.project={self.project}"
        of_service = f"label=com.docker.compose.service={service}"
        return self.docker("ps", "-aq", "--filter", label, "--filter", of_service).split()

    def container(self, service: str) -> str:
        """The id of a service's only container."""
        [found] = self.containers(service)
        return found

    def inspect(self, service: str) -> Any:
        return self.inspect_container(self.container(service))

    def inspect_container(self, container: str) -> Any:
        [found] = json.loads(self.docker("inspect", container))
        return found

    def wait_healthy(self, service: str, limit_s: float = START_S) -> None:
        for container in self.containers(service):
            self.wait_container(container, limit_s)

    def wait_container(self, container: str, limit_s: float = START_S) -> None:
        """Waits until a container is healthy."""
        until(
            lambda: self.inspect_container(container)["State"]["Health"]["Status"] == "healthy",
            limit_s,
            lambda: self.docker("logs", "--tail", "20", container),
        )

    def kill(self, service: str) -> None:
        """Ends a container by SIGKILL; it stays dead until it is started again."""
        self.docker("kill", "-s", "KILL", self.container(service))

    def start(self, service: str) -> None:
        self.docker("start", self.container(service))
        self.wait_healthy(service)

    def renew(self, service: str, *files: str, **environment: str) -> None:
        """Makes a service's container anew, with further files and variables; the rest stays."""
        self.compose(
            *("up", "-d", "--no-build", "--no-deps", "--scale", f"{service}=1", service),
            files=files,
            limit_s=START_S,
            **environment,
        )
        self.wait_healthy(service)

    def cut(self, service: str, network: str) -> None:
        """Takes a container off a network: what is under way there is lost without a word."""
        name = f"{self.project}_{network}"
        self.docker("network", "disconnect", name, self.container(service))

    def heal(self, service: str, network: str) -> None:
        name = f"{self.project}_{network}"
        self.docker("network", "connect", "--alias", service, name, self.container(service))

    def address(self, service: str, port: int) -> str:
        """The container's own address, which only this machine reaches."""
        networks = self.inspect(service)["NetworkSettings"]["Networks"]
        return f"{next(iter(networks.values()))['IPAddress']}:{port}"

    def gateway(self, network: str) -> str:
        """This machine's own address on a network of the stack."""
        [found] = json.loads(self.docker("network", "inspect", f"{self.project}_{network}"))
        return str(next(one["Gateway"] for one in found["IPAM"]["Config"] if "Gateway" in one))

    @contextmanager
    def relay(self, service: str, port: int) -> Iterator[str]:
        """An address of a service on `back`, where this machine has none: by a container."""
        name, python = f"{self.project}_relay", "/opt/assay/bin/python"
        self.docker(
            *("run", "--detach", "--name", name, "--network", f"{self.project}_front"),
            *("--entrypoint", python, f"assay-reward-server:{TAG}", "-c", _RELAY),
            *(service, str(port)),
        )
        try:
            self.docker("network", "connect", f"{self.project}_back", name)
            networks = self.inspect_container(name)["NetworkSettings"]["Networks"]
            address = networks[f"{self.project}_front"]["IPAddress"], port
            until(lambda: answers(address), 60.0, lambda: self.docker("logs", name))
            yield f"{address[0]}:{port}"
        finally:
            self.docker("rm", "--force", name)

    def python(self, service: str, source: str) -> str:
        """What a script prints that runs in a container, as its service's user."""
        python = "/opt/assay/bin/python"
        return self.docker("exec", self.container(service), python, "-c", source)

    def logs(self, container: str) -> str:
        """All that a container has said."""
        done = subprocess.run(
            ["docker", "logs", container],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return done.stdout

    def metrics(self, service: str, network: str) -> str:
        """What Prometheus would read of a service on a network: by a container for this alone."""
        script = (
            "import urllib.request as r;"
            f"print(r.urlopen('http://{service}:9464/metrics', timeout=10).read().decode())"
        )
        return self.docker(
            *("run", "--rm", "--read-only", "--network", f"{self.project}_{network}"),
            *("--entrypoint", "/opt/assay/bin/python", f"assay-reward-server:{TAG}", "-c", script),
        )

    def processes(self, service: str) -> list[str]:
        """The commands of the processes in a container, sorted; health checks left out."""
        rows = self.docker("top", self.container(service), "-eo", "pid,args").splitlines()[1:]
        commands = [row.split(maxsplit=1)[1] for row in rows]
        return sorted(command for command in commands if "assay.kit.health" not in command)
