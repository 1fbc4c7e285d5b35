"""The Docker backend on a real daemon: modes, ends, walls, faults and what is left behind.

Skipped where no daemon answers (DOCKER_HOST), or it has neither the image nor the runtime.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

docker = pytest.importorskip("docker", reason="the docker plug-in is not installed")

from assay.docker_backend import boxes as backend  # noqa: E402
from assay.docker_backend import container as containers  # noqa: E402
from assay.docker_backend.boxes import DockerBoxes, DockerConfig, DockerRunning  # noqa: E402
from assay.kit.errors import StartupError  # noqa: E402
from assay.sandbox.box import Pump  # noqa: E402
from assay.sandbox.domain import (  # noqa: E402
    MIB,
    BoxFile,
    EndKind,
    RunLimits,
    RunMode,
    RunRecord,
    RunRequest,
    SandboxFault,
    SubmittedProgram,
)
from assay.sandbox.judging.model import (  # noqa: E402
    AssertCase,
    CallCase,
    StdioCase,
    Suite,
    TestVerdict,
)
from assay.sandbox.judging.suite import judge  # noqa: E402
from assay.sandbox.languages import LanguagePreparer, discover  # noqa: E402

IMAGE = "python:3.11-slim-bookworm"
LIMITS = RunLimits(cpu_s=10, wall_s=20, memory_bytes=256 * MIB, disk_bytes=16 * MIB, processes=16)
Run = Callable[..., RunRecord]


def unusable(runtime: str) -> str:
    """Why the backend cannot be tested here; empty when it can."""
    try:
        api = containers.connect(DockerConfig())
    except StartupError as error:
        return str(error)
    try:
        containers.check(api, DockerConfig(image=IMAGE, runtime=runtime))
    except StartupError as error:
        return str(error)
    finally:
        api.close()
    return ""


def config(runtime: str = "") -> DockerConfig:
    reason = unusable(runtime)
    if reason:
        pytest.skip(reason)
    return DockerConfig(image=IMAGE, runtime=runtime)


@pytest.fixture(scope="module", params=["runc", "runsc"])
def boxes(request: pytest.FixtureRequest) -> Iterator[DockerBoxes]:
    made = DockerBoxes(config(request.param))
    yield made
    made.close()


@pytest.fixture
def gvisor(boxes: DockerBoxes) -> bool:
    return boxes.config.level == "gvisor"


def finish(running: DockerRunning) -> RunRecord:
    pump = Pump()
    pump.add(running)
    return pump.finish(running)


def python(source: str, *arguments: str, limits: RunLimits = LIMITS, **more: Any) -> RunRequest:
    files = (BoxFile("main.py", source.encode()), *more.pop("files", ()))
    return RunRequest(RunMode.PYTHON, ("main.py", *arguments), files, limits=limits, **more)


@pytest.fixture
def run(boxes: DockerBoxes) -> Run:
    def start(source: str, *arguments: str, **more: Any) -> RunRecord:
        return finish(boxes.candidate().start(python(source, *arguments, **more)))

    return start


def ours(api: Any) -> set[str]:
    return {found["Id"] for found in api.containers(all=True, filters={"label": containers.LABEL})}


def test_a_python_program_sees_its_folder_arguments_stdin_and_nothing_else(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_SECRET", "hidden")
    record = run(
        "import json, os, sys\n"
        "print(json.dumps([sys.argv, sys.stdin.read(), dict(os.environ), os.getcwd(),"
        " sorted(os.listdir()), os.listdir('/tmp'), __name__,"
        " open('sub/a.bin', 'rb').read().hex()]))",
        "one",
        "two",
        stdin=b"line\n",
        files=(BoxFile("sub/a.bin", b"\x00\xff"),),
        environment={"EXTRA": "1"},
    )
    assert record.ok, record
    argv, stdin, environment, folder, files, tmp, name, content = json.loads(record.stdout.data)
    assert (argv, stdin, folder, name) == (["main.py", "one", "two"], "line\n", "/box", "__main__")
    assert (files, tmp, content) == (["main.py", "sub"], [], "00ff")
    assert environment.items() >= {"EXTRA": "1", "HOME": "/box", "LANG": "C.UTF-8"}.items()
    assert not {"SERVICE_SECRET", "ASSAY_UID", "HOSTNAME"} & environment.keys()


def test_execution_of_a_command_and_of_a_descriptor(boxes: DockerBoxes) -> None:
    request = RunRequest(RunMode.EXEC, ("sh", "-c", "cat; echo err >&2; exit 7"), stdin=b"\xff\x00")
    record = finish(boxes.candidate().start(dataclasses.replace(request, limits=LIMITS)))
    assert (record.end, record.exit_code) == (EndKind.EXITED, 7)
    assert (record.stdout.data, record.stderr.data) == (b"\xff\x00", b"err\n")
    descriptor = os.memfd_create("program")
    try:
        os.write(descriptor, b'#!/bin/sh\necho "$1"; ls -A\n')
        request = RunRequest(RunMode.EXEC, ("prog", "arg"), limits=LIMITS, executable=descriptor)
        record = finish(boxes.candidate().start(request))
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 27, "the descriptor is borrowed"
    finally:
        os.close(descriptor)
    assert record.ok, record
    assert record.stdout.data == b"arg\n", "and the program's folder does not show it"


@pytest.mark.parametrize(
    ("source", "changes", "end"),
    [
        ("import sys; sys.exit(3)", {}, EndKind.EXITED),
        ("import os; os.kill(os.getpid(), 11)", {}, EndKind.SIGNALLED),
        ("while True: pass", {"cpu_s": 0.3}, EndKind.CPU_TIME_LIMIT),
        ("import time; time.sleep(60)", {"wall_s": 0.5}, EndKind.WALL_TIME_LIMIT),
        ("a = []\nwhile True: a.append(bytearray(1 << 20))", {}, EndKind.MEMORY_LIMIT),
        ("bytearray(10**10)", {}, EndKind.MEMORY_LIMIT),
        ("while True: print('x' * 10000)", {"max_output_bytes": 1 * MIB}, EndKind.OUTPUT_LIMIT),
        ("open('f', 'wb').write(bytes(20 << 20))", {}, EndKind.EXITED),
        ("import os; os.abort()", {}, EndKind.SIGNALLED),
    ],
    ids=["exit", "signal", "cpu", "wall", "memory", "one-object", "output", "disk", "abort"],
)
def test_ends_are_told_apart(run: Run, source: str, changes: dict[str, Any], end: EndKind) -> None:
    record = run(source, limits=LIMITS.with_(**changes))
    assert record.end is end, record
    assert not record.ok


def test_cpu_time_is_that_of_all_processes_together(run: Run) -> None:
    source = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    record = run(source, limits=LIMITS.with_(cpu_s=0.5))
    assert record.end is EndKind.CPU_TIME_LIMIT, record


def test_a_fork_bomb_ends_by_a_limit_and_the_next_run_is_well(run: Run) -> None:
    record = run("import os\nwhile True: os.fork()", limits=LIMITS.with_(wall_s=5))
    limits = {EndKind.PROCESS_LIMIT, EndKind.MEMORY_LIMIT, EndKind.WALL_TIME_LIMIT}
    assert record.end in limits | {EndKind.CPU_TIME_LIMIT}, record
    assert run("print(1)").stdout.data == b"1\n"


def test_more_processes_than_allowed_are_refused(boxes: DockerBoxes, run: Run) -> None:
    source = "import subprocess\np = [subprocess.Popen(['sleep', '5']) for _ in range(30)]"
    assert run(source).end is EndKind.PROCESS_LIMIT


def test_output_is_drained_kept_to_the_cap_and_counted(run: Run) -> None:
    record = run(
        "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 40000)\n"
        "sys.stderr.write('e' * 300000)",
        limits=LIMITS.with_(output_bytes=1000),
    )
    assert record.ok, record
    assert record.stdout.data == (bytes(range(256)) * 4)[:1000]
    assert (record.stdout.total_bytes, record.stdout.truncated) == (256 * 40000, True)
    assert (len(record.stderr.data), record.stderr.total_bytes) == (1000, 300000)


def test_large_stdin_arrives_whole_or_is_left_unread(run: Run) -> None:
    data = os.urandom(5 * MIB)
    source = "import sys, hashlib\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    assert run(source, stdin=data).stdout.data.decode().strip() == hashlib.sha256(data).hexdigest()
    assert run("print(1)", stdin=data).ok


def test_what_is_left_behind_dies_and_does_not_hold_the_output_open(run: Run) -> None:
    begun = time.monotonic()
    record = run(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(100)\nprint('done')"
    )
    assert record.stdout.data == b"done\n"
    assert record.ok
    assert time.monotonic() - begun < 60


def test_files_are_fetched_but_never_through_a_link(run: Run) -> None:
    record = run(
        "import os\nos.mkdir('d')\nopen('d/out', 'wb').write(b'z' * 3000000)\n"
        "os.symlink('/etc/passwd', 'link')\nos.symlink('/etc', 'e')\nos.mkfifo('pipe')\n"
        "open('big', 'wb').write(bytes(4000000))\n"
        "open('shut', 'w').write('own'); os.chmod('shut', 0o600)",
        fetch_paths=("d/out", "link", "e/passwd", "pipe", "big", "missing", "d", "shut"),
        fetch_bytes=5_000_000,
    )
    assert record.ok, record
    assert {file.path: len(file.content) for file in record.files} == {"d/out": 3000000, "shut": 3}


def test_the_walls(run: Run, gvisor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_SECRET", "hidden")
    record = run(
        """
import json, os, signal, socket
def attempt(action):
    try:
        return repr(action())
    except OSError as error:
        return type(error).__name__
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
print(json.dumps({
    "caps": status["CapEff"].strip() + status["CapPrm"].strip(),
    "nnp": status.get("NoNewPrivs", "?").strip(),
    "seccomp": status.get("Seccomp", "?").strip(),
    "uids": os.getresuid(), "groups": os.getgroups(),
    "kill": attempt(lambda: os.kill(1, signal.SIGKILL)),
    "forge": attempt(lambda: open("/proc/1/fd/1", "wb")),
    "environ": attempt(lambda: open("/proc/1/environ").read()),
    "memory": attempt(lambda: open("/proc/1/mem", "rb")),
    "root": attempt(lambda: open("/usr/evil", "w")),
    "library": attempt(lambda: open("/run/assay/evil", "w")),
    "connect": attempt(lambda: socket.create_connection(("192.0.2.1", 80), timeout=2)),
    "udp": attempt(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))),
    "terminal": attempt(lambda: open("/dev/ptmx", "rb")),
    "setuid": attempt(lambda: os.setuid(0)),
    "docker": os.path.exists("/var/run/docker.sock"),
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1],
}))
"""
    )
    assert record.ok, record
    seen = json.loads(record.stdout.data)
    assert set(seen["caps"]) == {"0"}
    if not gvisor:  # this kernel does not show them
        assert (seen["nnp"], seen["seccomp"]) == ("1", "2")
    assert (seen["uids"], seen["groups"]) == ([61000] * 3, [])
    assert seen["docker"] is False
    assert seen["descriptors"] == ["0", "1", "2"]
    if gvisor:  # its version of 2022 shows it; it is the image's, and the service has nothing in it
        assert "SECRET" not in seen.pop("environ").replace("PermissionError", "")
    else:
        assert seen["environ"] == "PermissionError"
    refused = ("kill", "forge", "memory", "root", "library", "connect", "setuid", "terminal")
    assert {seen[name] for name in refused} <= {
        "PermissionError",
        "OSError",
        "FileNotFoundError",
    }, seen
    assert seen["udp"] in {"OSError", "PermissionError"} or gvisor  # which applies no profile


@pytest.mark.parametrize(
    "call", ["unshare(0x10000000)", "ptrace(0, 0, 0, 0)", "mount(0, 0, 0, 0, 0)"]
)
def test_attacks_on_the_walls_end_or_fail(run: Run, gvisor: bool, call: str) -> None:
    record = run(f"import ctypes\nprint(ctypes.CDLL(None).{call})\nprint('on')")
    if call.startswith("unshare") or gvisor:
        assert gvisor or record.stdout.data == b"-1\non\n"
    else:
        assert (record.end, record.signal) == (EndKind.SECURITY_VIOLATION, signal.SIGSYS)


def test_kill_ends_every_process_and_is_recorded(boxes: DockerBoxes) -> None:
    source = "import os, time\nos.fork()\nprint('up', flush=True)\ntime.sleep(60)"
    running = boxes.candidate().start(python(source))
    running.kill(EndKind.OUTPUT_LIMIT, "too much")
    running.kill()
    record = finish(running)
    assert (record.end, record.detail) == (EndKind.OUTPUT_LIMIT, "too much")
    running = boxes.candidate().start(python(source))
    running.kill()
    assert finish(running).end is EndKind.SIGNALLED


def test_an_abandoned_run_does_not_hinder_the_next(boxes: DockerBoxes, run: Run) -> None:
    boxes.candidate().start(python("import time; time.sleep(60)"))
    assert run("print(2)").stdout.data == b"2\n"


HARNESS = """
import os, struct, sys
def exactly(fd, size):
    data = b""
    while len(data) < size:
        part = os.read(fd, size - len(data))
        if not part: raise SystemExit(5)
        data += part
    return data
def main(fd, argv):
    print("loaded", argv, sys.stdin.read() == "", flush=True)
    while True:
        frame = exactly(fd, struct.unpack("!I", exactly(fd, 4))[0])
        if frame == b"bye": return 9
        if frame == b"bomb": reply = struct.pack("!I", 2**31)
        else: reply = struct.pack("!I", len(frame)) + frame[::-1]
        while reply: reply = reply[os.write(fd, reply):]
"""


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        backend,
        "harness_files",
        lambda: {
            "assay/sandbox/__init__.py": b"",
            "assay/sandbox/harness/__init__.py": b"",
            "assay/sandbox/harness/candidate.py": HARNESS.encode(),
        },
    )


@pytest.mark.usefixtures("echo")
def test_the_channel_carries_frames_of_any_size_both_ways(boxes: DockerBoxes) -> None:
    request = RunRequest(RunMode.CANDIDATE, ("main.py",), limits=LIMITS)
    running = boxes.candidate().start(request)
    pump = Pump()
    pump.add(running)
    sent = [b"", b"abc", os.urandom(3 * MIB), b"x" * 70_000]
    for frame in sent:
        running.send(frame)
    while len(running.frames) < len(sent) and running.record is None:
        pump.step()
    assert [frame[::-1] for frame in running.frames] == sent
    running.send(b"bye")
    record = pump.finish(running)
    assert (record.end, record.exit_code) == (EndKind.EXITED, 9)
    assert record.stdout.data == b"loaded ('main.py',) True\n"
    running.send(b"late")  # no error


@pytest.mark.usefixtures("echo")
def test_a_frame_over_the_limit_ends_the_run(boxes: DockerBoxes) -> None:
    running = boxes.candidate().start(RunRequest(RunMode.CANDIDATE, ("m",), limits=LIMITS))
    running.send(b"bomb")
    assert finish(running).end is EndKind.OUTPUT_LIMIT
    assert not running.frames


@pytest.mark.usefixtures("echo")
def test_a_tester_and_a_candidate_run_side_by_side(boxes: DockerBoxes) -> None:
    first = boxes.candidate().start(RunRequest(RunMode.CANDIDATE, ("a",), limits=LIMITS))
    second = boxes.tester().start(RunRequest(RunMode.CANDIDATE, ("b",), limits=LIMITS))
    pump = Pump()
    for running in (first, second):
        pump.add(running)
        running.send(b"bye")
    assert [pump.finish(running).exit_code for running in (first, second)] == [9, 9]


def test_what_cannot_start_is_a_fault(boxes: DockerBoxes, run: Run) -> None:
    for argv, reason in (
        (("/usr/bin/no-such-compiler",), "INTERNAL"),
        (("./missing",), "INVALID_PROGRAM"),
    ):
        with pytest.raises(SandboxFault, match="cannot be started") as caught:
            boxes.candidate().start(RunRequest(RunMode.EXEC, argv, limits=LIMITS))
        assert caught.value.reason == reason
    with pytest.raises(SandboxFault, match="larger than its disk") as caught:
        run("", files=(BoxFile("big", bytes(17 * MIB)),))
    assert caught.value.reason == "INVALID_PROGRAM"
    with pytest.raises(SandboxFault) as caught:
        run("", files=tuple(BoxFile(f"f{n}", b"x") for n in range(17_000)))
    assert caught.value.reason == "INVALID_PROGRAM"
    assert run("print(3)").ok


def test_a_container_that_someone_else_kills_is_a_fault_and_the_next_run_is_well(
    boxes: DockerBoxes, run: Run
) -> None:
    running = boxes.candidate().start(python("import time; time.sleep(60)"))
    pump = Pump()
    pump.add(running)
    running._container.kill()
    with pytest.raises(SandboxFault) as caught:
        pump.finish(running)
    assert caught.value.reason == "WORKER_DIED"
    assert running.watched() == ()
    assert run("print(4)").stdout.data == b"4\n"


def test_closing_leaves_no_container_and_no_descriptor() -> None:
    settings = config()
    api = containers.connect(settings)
    before, descriptors = ours(api), len(list(Path("/proc/self/fd").iterdir()))
    boxes = DockerBoxes(settings)
    with contextlib.closing(boxes):
        for _ in range(3):
            finish(boxes.candidate().start(python("print(1)")))
        boxes.tester().start(python("import time; time.sleep(60)"))
        assert ours(api) - before
    assert not ours(api) - before
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
    api.close()


CHILD = """
import sys, time
from assay.docker_backend.boxes import DockerBoxes, DockerConfig
from assay.sandbox.domain import BoxFile, RunMode, RunRequest
boxes = DockerBoxes(DockerConfig(image=sys.argv[1]))
source = b"import time; time.sleep(600)"
boxes.candidate().start(RunRequest(RunMode.PYTHON, ("m.py",), (BoxFile("m.py", source),)))
print("up", flush=True)
time.sleep(600)
"""


def test_a_service_that_is_killed_leaves_nothing_running_and_the_next_sweeps_up(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config()
    api = containers.connect(settings)
    before = ours(api)
    path = os.pathsep.join(
        str(repository / part) for part in ("protos", "kit", "sandbox", "plugins/docker_backend")
    )
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, IMAGE],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        assert len(ours(api) - before) >= 1
        child.send_signal(signal.SIGKILL)
    filters = {"label": containers.LABEL, "status": "running"}
    until_s = time.monotonic() + 60
    while True:
        running = {found["Id"] for found in api.containers(filters=filters)} - before
        if not running or time.monotonic() > until_s:
            break
        time.sleep(0.1)
    assert not running
    containers.sweep(api)
    assert ours(api) - before, "what ended just now may be another slot's"
    monkeypatch.setattr(containers, "SWEEP_AGE_S", 0.0)
    containers.sweep(api)
    assert not ours(api) - before
    api.close()


def test_a_backend_that_cannot_work_says_so_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="DOCKER_HOST"):
        DockerBoxes(DockerConfig(url=f"unix://{tmp_path}/none.sock"))
    with pytest.raises(StartupError, match="unix:// or plain tcp://"):
        DockerBoxes(DockerConfig(url="ssh://host"))
    settings = config()
    for changes, text in (
        ({"image": "assay-no-such-image"}, "pull or build"),
        ({"runtime": "no-such-runtime"}, "knows no runtime"),
        ({"python": "no-such-python"}, "no program runs"),
        ({"python": "true"}, "no program runs"),
    ):
        with pytest.raises(StartupError, match=text):
            DockerBoxes(dataclasses.replace(settings, **changes))


def test_folders_of_the_host_are_seen_read_only_and_must_exist(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir(mode=0o755)
    (tmp_path / "tool" / "made").write_text("in advance")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    settings = dataclasses.replace(config(), read_only_paths=(str(tmp_path / "tool"),))
    source = f"import os\nprint(os.listdir({str(tmp_path / 'tool')!r}))\n"
    source += f"open({str(tmp_path / 'tool' / 'new')!r}, 'w')"
    boxes = DockerBoxes(settings)
    with contextlib.closing(boxes):
        record = finish(boxes.candidate().start(python(source)))
    assert record.stdout.data == b"['made']\n"
    assert b"Read-only file system" in record.stderr.data or b"Permission" in record.stderr.data
    missing = str(tmp_path / "missing")
    with pytest.raises(StartupError, match="no program runs"):
        DockerBoxes(dataclasses.replace(settings, read_only_paths=(missing,)))
    assert not Path(missing).exists()


def test_a_spare_of_another_shape_is_not_used() -> None:
    boxes = DockerBoxes(config())
    with contextlib.closing(boxes):
        for memory in (64, 128):
            source = "print(open('/sys/fs/cgroup/memory/memory.limit_in_bytes').read())"
            if not Path("/sys/fs/cgroup/memory").exists():
                source = "print(open('/sys/fs/cgroup/memory.max').read())"
            limits = LIMITS.with_(memory_bytes=memory * MIB)
            record = finish(boxes.candidate().start(python(source, limits=limits)))
            assert int(record.stdout.data) == memory * MIB + containers.INIT_BYTES


def test_tests_of_every_kind_are_judged_as_in_the_jail(boxes: DockerBoxes) -> None:
    pump = Pump()
    preparer = LanguagePreparer(discover(["python"]), None, boxes, pump)
    source = (
        "import sys\n"
        "def add(a, b): return a + b\n"
        "class Liar:\n    def __eq__(self, other): return True\n"
        "def lie(): return Liar()\n"
        "if __name__ == '__main__' and not sys.stdin.closed:\n"
        "    line = sys.stdin.readline()\n"
        "    print(sum(map(int, line.split())) if line else 'none')\n"
    )
    tests = (
        StdioCase("stdio", b"2 3\n", b"5", limits=LIMITS),
        CallCase("call", "add", (2, 3), 5, limits=LIMITS),
        CallCase("wrong", "add", (2, 3), 6, limits=LIMITS),
        CallCase("liar", "lie", (), 5, limits=LIMITS),
        AssertCase("folded", "assert add(1, 2) == 3", limits=LIMITS),
        AssertCase("tester", "import math\nassert add(math.pi, 0) == math.pi", limits=LIMITS),
        AssertCase("forged", "import math\nassert lie() == math.pi", limits=LIMITS),
    )
    prepared = preparer.prepare(SubmittedProgram("python", source), LIMITS)
    report = judge(prepared, Suite(tests), boxes, pump, preparer)
    passed = [test.name for test in report.outcomes if test.verdict is TestVerdict.PASSED]
    assert passed == ["stdio", "call", "folded", "tester"], report.outcomes


def test_a_language_that_compiles_is_told_that_its_toolchain_is_not_in_the_image(
    boxes: DockerBoxes,
) -> None:
    """The service finds a compiler on its own machine; the image of these tests has none."""
    toolchains = discover(["c"])
    if "c" not in toolchains.found:
        pytest.skip("there is no C compiler on this machine")
    preparer = LanguagePreparer(toolchains, None, boxes, Pump())
    with pytest.raises(SandboxFault, match=IMAGE) as caught:
        preparer.prepare(SubmittedProgram("c", "int main(void) { return 0; }"), LIMITS)
    assert caught.value.reason == "INTERNAL"
