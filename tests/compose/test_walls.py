"""What the containers may do: as little as compose.yaml says, and what the daemon made of it."""

from __future__ import annotations

import json
import socket

import pytest

from assay.clients.execution import ExecutionClient, ExecutionJob, Program
from compose_support import SERVICES, TAG, Stack

USER = 65532
WRITE = """
import os, pathlib
failed = []
for path in ("/x", "/opt/assay/x", "/usr/bin/x", "/etc/x", "/models/x"):
    try:
        pathlib.Path(path).write_text("x")
    except OSError:
        failed.append(path)
print(len(failed), os.getuid(), os.getgid())
"""
STATUS = """
lines = dict(line.split(":", 1) for line in open("/proc/1/status"))
keys = ("Uid", "CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Seccomp")
print(*(lines[key].strip() for key in keys))
"""
PACKAGES = """
import importlib.metadata, sysconfig
found = importlib.metadata.distributions(path=[sysconfig.get_path("purelib")])
print(*(one.name for one in found))
"""
CONNECT = """
import socket, sys
probe = socket.socket()
probe.settimeout(5)
print(probe.connect_ex(({address!r}, {port})) == 0)
"""
RESOLVE = """
import socket
try:
    print(bool(socket.gethostbyname({name!r})))
except OSError:
    print(False)
"""


@pytest.mark.parametrize("service", SERVICES)
def test_a_container_has_nothing_that_it_does_not_need(stack: Stack, service: str) -> None:
    found = stack.inspect(service)
    host = found["HostConfig"]
    assert host["Privileged"] is False
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert not host["Devices"]
    assert host["PidMode"] == host["UTSMode"] == ""
    assert host["IpcMode"] in ("private", "shareable")  # the daemon's default; nobody shares it
    assert host["Memory"] > 0
    assert host["PidsLimit"] > 0
    assert "no-new-privileges" in " ".join(host["SecurityOpt"])
    assert "unconfined" not in " ".join(host["SecurityOpt"])
    assert [mount["Type"] for mount in found["Mounts"] if mount["Destination"] == "/var/run"] == []
    assert not any("docker.sock" in mount["Source"] for mount in found["Mounts"])
    writable = {mount["Destination"] for mount in found["Mounts"] if mount["RW"]}
    assert writable == {"/journal" if service == "reward_server" else "/var/cache/assay"}


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_runs_as_nobody_in_particular(stack: Stack, service: str) -> None:
    nothing = "0" * 16
    user = "\t".join([str(USER)] * 4)
    assert stack.python(service, STATUS).strip() == f"{user} {nothing} {nothing} {nothing} 1 2"
    assert stack.python(service, WRITE).split() == ["5", str(USER), str(USER)]


def test_one_port_is_published(stack: Stack) -> None:
    published = {
        (service, port): [(where["HostIp"], where["HostPort"]) for where in bound]
        for service in SERVICES
        for port, bound in stack.inspect(service)["NetworkSettings"]["Ports"].items()
        if bound
    }
    assert published == {("reward_server", "50051/tcp"): [("127.0.0.1", str(stack.port))]}


def says(stack: Stack, service: str, script: str, **values: object) -> bool:
    return stack.python(service, script.format(**values)).strip() == "True"


def test_the_sandbox_has_no_way_out(stack: Stack) -> None:
    """What the reward server reaches is the control: the judge, and a listener of this test."""
    judge, port = stack.address("genrm", 50053).split(":")
    assert says(stack, "reward_server", CONNECT, address=judge, port=port)
    assert not says(stack, "sandbox", CONNECT, address=judge, port=port)
    assert says(stack, "reward_server", RESOLVE, name="genrm")
    assert not says(stack, "sandbox", RESOLVE, name="genrm")
    assert says(stack, "sandbox", RESOLVE, name="reward_server")
    # This machine's end of both networks: who has a way gets there.
    front, back = stack.gateway("front"), stack.gateway("back")
    with socket.create_server(("0.0.0.0", 0)) as listener:
        free = listener.getsockname()[1]
        assert says(stack, "reward_server", CONNECT, address=front, port=free), (
            "the control: does a firewall keep containers from this machine?"
        )
        for address in (front, back):
            assert not says(stack, "sandbox", CONNECT, address=address, port=free), address


@pytest.mark.parametrize(
    ("network", "services"), [("back", ("reward_server", "sandbox")), ("judges", ("genrm",))]
)
def test_prometheus_would_reach_the_metrics(
    stack: Stack, network: str, services: tuple[str, ...]
) -> None:
    """From a container where compose.yaml puts it; from elsewhere nothing is to be had."""
    for service in services:
        assert "# TYPE assay_" in stack.metrics(service, network)
    for stranger in set(SERVICES) - set(services):
        with pytest.raises(AssertionError, match=r"urlopen error|Name or service not known"):
            stack.metrics(stranger, network)


def test_compose_reads_every_file_with_every_profile(stack: Stack) -> None:
    everything = ["genrm", "observability", "envoy"]
    named = stack.compose("config", "--services", files=["compose.gpu.yaml"], profiles=everything)
    assert set(named.split()) == {*SERVICES, "prometheus", "grafana", "otel-collector", "envoy"}


def test_programs_are_walled_in_as_the_documentation_says(sandbox: ExecutionClient) -> None:
    layers = sandbox.list_languages().isolation_layers
    for wall in ("user", "pid", "mount", "network", "ipc", "uts"):
        assert f"{wall}-namespace" in layers
    assert {"seccomp", "no-new-privileges"} <= set(layers)
    [run] = sandbox.execute([ExecutionJob(Program("python", "import os; print(os.getpid())"))])
    assert run.isolation_level == "namespaces"  # type: ignore[union-attr]  # a fault has none


def test_no_token_is_shown(stack: Stack) -> None:
    for service in SERVICES:
        shown = str(stack.inspect(service)) + stack.docker("logs", stack.container(service))
        assert stack.token not in shown
        assert stack.sandbox_token not in shown


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_holds_its_service_and_nothing_to_install_more(stack: Stack, service: str) -> None:
    title = f"assay-{service.replace('_', '-')}"
    [image] = json.loads(stack.docker("image", "inspect", f"{title}:{TAG}"))
    assert image["Config"]["User"] == f"{USER}:{USER}"
    assert image["Config"]["Labels"]["org.opencontainers.image.title"] == title
    packages = set(stack.python(service, PACKAGES).split())
    ours = {name for name in packages if name.startswith("assay-")}
    expected = {
        "reward_server": {
            "assay-api",
            "assay-kit",
            "assay-clients",
            "assay-compat",
            "assay-math",
            "assay-ray-pool",
            "assay-reward-server",
            "assay-verifiers-extra",
        },
        "sandbox": {
            "assay-api",
            "assay-kit",
            "assay-clients",
            "assay-compat",
            "assay-ray-pool",
            "assay-sandbox",
        },
        "genrm": {"assay-api", "assay-kit", "assay-clients", "assay-genrm"},
    }
    assert ours == expected[service]
    spare = {"pip", "pytest", "trl", "hatchling"}
    if service == "sandbox":
        spare.remove("pytest")  # programs may be suites of it
    assert not packages & spare
    assert ("torch" in packages) == (service == "genrm")
    print(f"\n{title}: {image['Size'] / 1e6:.0f} MB")


def test_health_is_asked_by_grpc_and_says_the_truth(stack: Stack) -> None:
    for service in SERVICES:
        [*_, last] = stack.inspect(service)["State"]["Health"]["Log"]
        assert (last["ExitCode"], last["Output"].split()[-1]) == (0, "serving")
    ask = ("exec", stack.container("sandbox"), "/opt/assay/bin/python", "-m", "assay.kit.health")
    with pytest.raises(AssertionError, match="unreachable"):
        stack.docker(*ask, "127.0.0.1:1")
