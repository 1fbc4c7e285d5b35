"""The Docker backend without a daemon: what a container is asked for, and the frames."""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

docker = pytest.importorskip("docker", reason="the docker plug-in is not installed")

from assay.docker_backend import backend  # noqa: E402
from assay.docker_backend import container as containers  # noqa: E402
from assay.docker_backend import container_init as init  # noqa: E402
from assay.docker_backend.backend import DockerBackend  # noqa: E402
from assay.docker_backend.container import ContainerShape, DockerConfig  # noqa: E402
from assay.docker_backend.conversation import Conversation  # noqa: E402
from assay.docker_backend.profiles import program_profile, service_profile  # noqa: E402
from assay.kit.errors import StartupError  # noqa: E402
from assay.sandbox.backends import find_backend  # noqa: E402
from assay.sandbox.config import SandboxConfig  # noqa: E402
from assay.sandbox.domain import MIB, RunLimits  # noqa: E402
from assay.sandbox.site import survey  # noqa: E402
from assay.sandbox.zygote import syscalls  # noqa: E402

FRAMES = st.lists(st.tuples(st.sampled_from([b"O", b"E", b"C", b"D"]), st.binary(max_size=300)))


def asked(**changes: Any) -> dict[str, Any]:
    """What the daemon is asked for; a client of a fixed version asks it nothing by itself."""
    api = docker.APIClient(base_url="unix:///nowhere", version="1.41")
    try:
        options = containers.options(api, DockerConfig(**changes), ContainerShape.of(RunLimits()))
    finally:
        api.close()
    return options


@pytest.mark.parametrize("name", ["docker", "runsc"])
def test_the_sandbox_finds_both_back_ends_and_looks_for_the_daemon_at_its_start(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    found = find_backend(name)
    assert isinstance(found, DockerBackend)
    assert found.runtime == ("runsc" if name == "runsc" else "")
    with pytest.raises(StartupError, match="start it, or set DOCKER_HOST"):
        survey(SandboxConfig(backend=name))


def test_the_walls_are_what_the_daemon_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Daemon:
        def info(self) -> dict[str, Any]:
            return {"Runtimes": {"runc": {}, "runsc": {}}, "SecurityOptions": ["name=seccomp"]}

        def inspect_image(self, name: str) -> None:
            assert name == containers.DEFAULT_IMAGE

        def close(self) -> None:
            pass

    monkeypatch.setattr(backend, "connect", lambda config: Daemon())
    jailed, guarded = (find_backend(name).check(SandboxConfig()) for name in ("docker", "runsc"))
    assert (jailed.level, guarded.level) == ("container", "gvisor")
    assert set(guarded.layers) - set(jailed.layers) == {"gvisor"}
    assert "seccomp" in jailed.layers


def test_every_wall_is_asked_for_and_nothing_that_opens_one() -> None:
    options = asked(image="an-image")
    host = options["host_config"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert set(host["CapAdd"]) == {"KILL", "SETGID", "SETUID"}
    assert host["SecurityOpt"] == ["no-new-privileges", f"seccomp={program_profile()}"]
    assert host["Memory"] == host["MemorySwap"] == 512 * MIB + containers.INIT_BYTES
    assert host["PidsLimit"] == 65
    assert host["LogConfig"]["Type"] == "none"
    assert "nosuid" in host["Tmpfs"]["/box"]
    assert f"size={64 * MIB}" in host["Tmpfs"]["/box"]
    assert host["Mounts"] == []
    assert not {"Privileged", "Binds", "Devices", "PidMode", "Runtime"} & host.keys()
    assert options["environment"] == {"ASSAY_UID": "61000"}
    assert max(map(len, options["command"])) < 128 * 1024, "the kernel's limit of one argument"


def test_the_runtime_is_passed_on_and_makes_the_level() -> None:
    assert asked(runtime="runsc")["host_config"]["Runtime"] == "runsc"
    assert DockerConfig(runtime="runsc").level == "gvisor"
    assert DockerConfig(runtime="runsc-kvm").level == "gvisor"
    assert DockerConfig().level == "container"


def test_read_only_paths_are_bound_read_only() -> None:
    [mount] = asked(read_only_paths=("/opt/tool",))["host_config"]["Mounts"]
    assert (mount["Source"], mount["Target"], mount["ReadOnly"]) == ("/opt/tool", "/opt/tool", True)


def actions(profile: str) -> dict[str, set[str]]:
    """Names by action, those that are judged by an argument left out."""
    found: dict[str, set[str]] = {}
    for rule in json.loads(profile)["syscalls"]:
        if "args" not in rule:
            found.setdefault(rule["action"], set()).update(rule["names"])
    return found


def test_profiles_refuse_what_they_must() -> None:
    service, program = actions(service_profile()), actions(program_profile())
    dangerous = {
        "setns",
        "ptrace",
        "bpf",
        "keyctl",
        "init_module",
        "kexec_load",
        "open_by_handle_at",
    }
    dangerous |= {"perf_event_open", "userfaultfd", "io_uring_setup", "reboot", "process_vm_writev"}
    assert not dangerous & service["SCMP_ACT_ALLOW"]
    walls = {"unshare", "mount", "umount2", "pivot_root", "chroot", "clone", "socket", "shmget"}
    assert not (dangerous | walls) & program["SCMP_ACT_ALLOW"]
    assert {"unshare", "mount", "umount2", "pivot_root", "clone"} <= service["SCMP_ACT_ALLOW"]
    assert {"ptrace", "mount", "bpf"} <= program["SCMP_ACT_KILL_PROCESS"]
    for profile in (service, program):
        names = [name for group in profile.values() for name in group]
        assert len(names) == len(set(names)), "no call has two answers"


def test_the_service_enters_mounts_and_no_other_namespace() -> None:
    [rule] = [r for r in json.loads(service_profile())["syscalls"] if "setns" in r["names"]]
    assert (rule["names"], rule["action"]) == (["setns"], "SCMP_ACT_ALLOW")
    assert rule["args"] == [{"index": 1, "value": syscalls.CLONE_NEWNS, "op": "SCMP_CMP_EQ"}]


def test_the_profile_in_the_repository_is_the_one_that_is_made(repository: Path) -> None:
    text = (repository / "sandbox" / "seccomp.json").read_text(encoding="utf-8")
    assert text == service_profile(), "run scripts/seccomp_profile.py write"


def wrapped(frames: list[tuple[bytes, bytes]], sizes: list[int], noise: bytes) -> bytes:
    """Frames as the daemon sends them: cut anywhere, with stderr in between."""
    stream = b"".join(init.HEADER.pack(kind, len(data)) + data for kind, data in frames)
    pieces = []
    while stream:
        size = sizes.pop() if sizes else len(stream)
        pieces.append(struct.pack("!BxxxI", 1, len(stream[:size])) + stream[:size])
        pieces.append(struct.pack("!BxxxI", 2, len(noise)) + noise)
        stream = stream[size:]
    return b"".join(pieces)


@given(
    frames=FRAMES,
    sizes=st.lists(st.integers(1, 40)),
    cuts=st.lists(st.integers(1, 50)),
    noise=st.binary(max_size=5),
)
def test_frames_come_out_whole_wherever_the_stream_is_cut(
    frames: list[tuple[bytes, bytes]], sizes: list[int], cuts: list[int], noise: bytes
) -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        talk = Conversation(near)
        data = wrapped(frames, sizes, noise)
        got = []
        while data:
            size = cuts.pop() if cuts else len(data)
            far.sendall(data[:size])
            data = data[size:]
            got += list(talk.receive())
        assert got == frames
        assert not talk.closed
        far.close()
        assert list(talk.receive()) == []
        assert talk.closed
        talk.close()


@given(data=st.lists(st.binary(max_size=3 * init.PART_BYTES // 2), max_size=3))
def test_sending_never_blocks_and_loses_nothing(data: list[bytes]) -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.settimeout(10)
        talk = Conversation(near)
        for part in data:
            talk.send_parts(b"I", part)
        received = bytearray()
        while len(talk.watched()) > 1:
            received += far.recv(1 << 20)
            talk.flush()
        far.setblocking(False)
        while True:
            try:
                received += far.recv(1 << 20)
            except BlockingIOError:
                break
        content = bytearray()
        while received:
            kind, size = init.HEADER.unpack_from(received)
            assert (kind, size <= init.PART_BYTES) == (b"I", True)
            content += received[init.HEADER.size : init.HEADER.size + size]
            del received[: init.HEADER.size + size]
        assert content == b"".join(data)
        talk.close()


def test_sending_to_one_that_is_gone_is_no_error() -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    talk = Conversation(near)
    far.close()
    talk.send(b"K")
    talk.send_parts(b"I", bytes(10))
    assert list(talk.receive()) == []
    assert talk.closed
    talk.send(b"K")
    talk.close()
    near.close()


def test_a_named_payload_comes_back() -> None:
    assert init.unnamed(init.named(["päth", 0o644], b"\x00x")) == (["päth", 0o644], b"\x00x")
