"""The jail, with real zygotes: every end of a program, what a program sees, what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox.domain import (
    MIB,
    PYTHON_PACKAGES,
    BoxFile,
    EndKind,
    RunMode,
    RunRequest,
    SandboxFault,
)
from assay.sandbox.jail import JailBox, JailBoxes, JailConfig, LaunchError
from assay.sandbox.jail.launch import kill_user
from assay.sandbox.jail.monitor import descendants
from assay.sandbox.jail.packages import find
from assay.sandbox.jail.reach import closed_way
from assay.sandbox.languages import discover, self_test
from sandbox_jail_support import (
    FOUND,
    REACHABLE,
    SYSTEM_PYTHON,
    Runner,
    left_running,
    of_user,
    script,
)

pytestmark = pytest.mark.skipif(not REACHABLE, reason="no level of isolation works here")


@pytest.fixture(scope="module", params=REACHABLE)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    made = Runner(request.param)
    yield made
    made.boxes.close()


@pytest.fixture(scope="module")
def best() -> Iterator[Runner]:
    made = Runner(REACHABLE[0])
    yield made
    made.boxes.close()


def namespaces_only(runner: Runner) -> None:
    if runner.level != "namespaces":
        pytest.skip("only the mount and process namespaces give this")


def packages_reached(runner: Runner) -> None:
    shown = runner.level == "namespaces"
    if (closed := closed_way(find(PYTHON_PACKAGES).paths, shown=shown)) and not os.geteuid():
        pytest.skip(f"{closed} is closed to programs of another user")


class TestEnds:
    def test_exit_codes(self, runner: Runner) -> None:
        assert runner.python("print('a')").ok
        assert runner.python("import sys; sys.exit(7)").exit_code == 7
        assert runner.python("import sys; sys.exit('words')").exit_code == 1
        assert runner.python("import os; os._exit(255)").exit_code == 255

    def test_an_exception_is_reported_as_the_interpreter_does(self, runner: Runner) -> None:
        record = runner.python("def f():\n    return 1 / 0\nf()\n")
        assert (record.end, record.exit_code) == (EndKind.EXITED, 1)
        lines = record.stderr.data.decode().splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert lines[1] == '  File "main.py", line 3, in <module>'
        assert lines[-1] == "ZeroDivisionError: division by zero"

    def test_signals(self, runner: Runner) -> None:
        source = "import os, signal; os.kill(os.getpid(), signal.{})"
        for name in ("SIGKILL", "SIGTERM", "SIGABRT", "SIGSEGV"):
            record = runner.python(source.format(name))
            assert record.end is EndKind.SIGNALLED, name
            assert record.signal == signal.Signals[name]

    def test_cpu_time(self, runner: Runner) -> None:
        record = runner.python("while True: pass", cpu_s=0.3)
        assert record.end is EndKind.CPU_TIME_LIMIT
        assert record.cpu_s > 0.3

    def test_cpu_time_of_children_counts(self, runner: Runner) -> None:
        if runner.level == "confined":
            pytest.skip("no process can be started")
        source = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
        assert runner.python(source, cpu_s=0.5, wall_s=30).end is EndKind.CPU_TIME_LIMIT

    def test_wall_time(self, runner: Runner) -> None:
        record = runner.python("import time; print('on', flush=True); time.sleep(60)", wall_s=0.3)
        assert record.end is EndKind.WALL_TIME_LIMIT
        assert record.stdout.data == b"on\n"
        assert record.wall_s >= 0.3

    def test_memory(self, runner: Runner) -> None:
        source = "a = []\nwhile True: a.append(bytearray(4_000_000))"
        assert runner.python(source, memory_bytes=96 * MIB).end is EndKind.MEMORY_LIMIT
        assert runner.python("print(1)").ok

    def test_output(self, runner: Runner) -> None:
        source = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
        record = runner.python(source, output_bytes=1000, max_output_bytes=MIB)
        assert record.end is EndKind.OUTPUT_LIMIT
        assert record.stdout.data == b"x" * 1000
        assert record.stdout.truncated

    def test_processes(self, runner: Runner) -> None:
        source = "import os, time\nfor _ in range(500):\n    if os.fork() == 0: time.sleep(60)\n"
        record = runner.python(source, processes=8)
        expected = {EndKind.PROCESS_LIMIT, EndKind.EXITED}  # without a counter: the error it got
        assert record.end in expected
        assert not record.ok

    def test_a_forbidden_call(self, runner: Runner) -> None:
        record = runner.python("import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)")
        assert record.end is EndKind.SECURITY_VIOLATION

    def test_a_program_that_is_not_there(self, runner: Runner) -> None:
        with pytest.raises(SandboxFault, match="cannot be executed: No such file"):
            runner.command("/no/such/program")
        assert runner.python("print(1)").ok


class TestWhatItSees:
    def test_arguments_input_environment_files(self, runner: Runner) -> None:
        source = (
            "import os, sys\n"
            "print(sys.argv, sys.stdin.read(), os.environ['COLOUR'], open('data/in.txt').read())\n"
        )
        record = runner.python(
            source,
            arguments=("a", "b c"),
            stdin=b"input",
            environment={"COLOUR": "blue"},
            files=(BoxFile("data/in.txt", b"file"),),
        )
        assert record.stdout.data == b"['main.py', 'a', 'b c'] input blue file\n"

    def test_modules_beside_the_script(self, runner: Runner) -> None:
        request = RunRequest(
            RunMode.PYTHON,
            ("pkg/main.py",),
            (
                BoxFile("pkg/main.py", b"import data; print(data.x)"),
                BoxFile("pkg/data.py", b"x = 5"),
            ),
        )
        assert runner.pump.finish(runner.start(request)).stdout.data == b"5\n"

    def test_nothing_of_the_service(self, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ASSAY_TEST_SECRET", "secret")
        fresh = Runner(runner.level)  # a zygote that is started under this environment
        try:
            record = fresh.python(
                "import os; print(sorted(os.environ)); print(os.listdir('/proc/self/fd'))"
            )
        finally:
            fresh.boxes.close()
        assert b"SECRET" not in record.stdout.data
        assert b"HOME" in record.stdout.data

    def test_only_its_three_streams_are_open(self, runner: Runner) -> None:
        source = (
            "import os\n"
            "def is_open(n):\n"
            "    try: os.fstat(n); return True\n"
            "    except OSError: return False\n"
            "print([n for n in range(2000) if is_open(n)])\n"
        )
        assert runner.python(source).stdout.data == b"[0, 1, 2]\n"

    def test_no_rights(self, best: Runner) -> None:
        namespaces_only(best)
        status = best.python("print(open('/proc/self/status').read())").stdout.data.decode()
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert facts["NoNewPrivs"].strip() == "1"
        assert facts["Seccomp"].strip() == "2"
        assert int(facts["CapEff"], 16) == int(facts["CapPrm"], 16) == 0

    def test_it_can_write_in_its_own_places_only(self, runner: Runner) -> None:
        source = (
            "import os\n"
            "for path in ('here', os.environ['TMPDIR'] + '/there'):\n"
            "    open(path, 'w').write('x')\n"
            "for path in ('/usr/x', '/etc/x', '/x', '/dev/x', '/proc/x', '/var/tmp/x'):\n"
            "    try: open(path, 'w')\n"
            "    except OSError: continue\n"
            "    print('wrote', path)\n"
        )
        record = runner.python(source)
        assert record.ok, record.stderr.data
        assert record.stdout.data == b""

    def test_its_disk_is_small(self, best: Runner) -> None:
        namespaces_only(best)
        source = "open('f', 'wb').write(bytes({}))"
        assert best.python(source.format(3 * MIB), disk_bytes=4 * MIB).ok
        assert not best.python(source.format(5 * MIB), disk_bytes=4 * MIB).ok
        many = "for n in range(20_000): open(f'f{n}', 'w')"
        assert b"No space left" in best.python(many).stderr.data

    def test_no_network(self, runner: Runner) -> None:
        source = (
            "import socket\n"
            "try:\n"
            "    s = socket.socket(); s.settimeout(1); s.connect(('127.0.0.1', {})); print('IN')\n"
            "except OSError as error: print('out')\n"
        )
        import socket

        with socket.create_server(("127.0.0.1", 0)) as server:
            record = runner.python(source.format(server.getsockname()[1]))
        assert record.stdout.data == b"out\n"

    def test_it_is_alone(self, best: Runner) -> None:
        namespaces_only(best)
        source = (
            "import os\n"
            "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()), os.getpid())\n"
        )
        numbers, own = best.python(source).stdout.data.decode().rsplit(" ", 1)
        assert numbers == f"[{own.strip()}]"

    def test_streams_open_again_by_name(self, best: Runner) -> None:
        namespaces_only(best)
        source = "print(open('/dev/stdin').read()); open('/dev/stderr', 'w').write('b')"
        record = best.python(source, stdin=b"a")
        assert (record.stdout.data, record.stderr.data) == (b"a\n", b"b")

    def test_streams_behave_as_a_pipe_s(self, runner: Runner) -> None:
        source = (
            "import sys; sys.stdout.reconfigure(errors='surrogatepass'); print('\\ud800', end='')"
        )
        assert runner.python(source).stdout.data == b"\xed\xa0\x80"

    def test_packages_of_the_list_can_be_imported_and_others_not(self, best: Runner) -> None:
        source = "import numpy; print(numpy.arange(3).sum())"
        record = best.pump.finish(best.start(script(source), best.boxes.candidate(source)))
        assert record.stdout.data == b"3\n", record.stderr.data
        assert b"ModuleNotFoundError" in best.python("import grpc").stderr.data
        assert b"ModuleNotFoundError" in best.python("import assay.sandbox.harness").stderr.data

    def test_the_same_program_gives_the_same_answer(self, best: Runner) -> None:
        source = "import random; print(list({'a', 'b', 'c', 'd'}), hash('x'), random.random())"
        other = Runner(best.level)
        try:
            first = other.python(source).stdout.data
            assert first == best.python(source).stdout.data == best.python(source).stdout.data
        finally:
            other.boxes.close()


class TestOutput:
    def test_binary_output_comes_whole(self, runner: Runner) -> None:
        source = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"
        assert runner.python(source).stdout.data == bytes(range(256)) * 1000

    def test_both_streams_at_once_never_block_each_other(self, runner: Runner) -> None:
        source = (
            "import sys\n"
            "for _ in range(100):\n"
            "    sys.stderr.buffer.write(b'e' * 30_000); sys.stderr.flush()\n"
            "    sys.stdout.buffer.write(b'o' * 30_000); sys.stdout.flush()\n"
        )
        record = runner.python(source, output_bytes=10)
        assert record.ok
        assert record.stdout.total_bytes == record.stderr.total_bytes == 3_000_000
        assert record.stdout.truncated

    def test_a_large_input_that_nobody_reads(self, runner: Runner) -> None:
        assert runner.python("print(1)", stdin=bytes(20 * MIB)).ok

    def test_a_large_program(self, runner: Runner) -> None:
        source = "text = '" + "y" * 300_000 + "'\nprint(len(text))"
        assert runner.python(source).stdout.data == b"300000\n"

    @pytest.mark.parametrize(
        "source",
        [
            "import numpy\nprint(numpy.random.rand())",
            "import importlib\nprint(importlib.import_module('num' + 'py').random.rand())",
            "import importlib\nprint(importlib.import_module('num' + 'py.random').rand())",
            "import random\nprint(random.random(), hash('a'))",
        ],
    )
    def test_equal_programs_get_equal_random_numbers(self, runner: Runner, source: str) -> None:
        pytest.importorskip("numpy")
        packages_reached(runner)
        request = script(source)
        box = runner.boxes.candidate(source)
        records = [runner.pump.finish(runner.start(request, box)) for _ in range(3)]
        assert all(record.ok for record in records), records
        assert len({record.stdout.data for record in records}) == 1

    def test_what_is_shown_beneath_the_temporary_folder(self, tmp_path: Path) -> None:
        """The folder stays the program's, to write to and to list, in every run."""
        namespaces_only(best := Runner(REACHABLE[0]))
        shown = tmp_path / "a place" / "lib"
        shown.mkdir(parents=True)
        (shown / "data").write_text("shown")
        shown.parent.chmod(0o700)
        best.boxes = JailBoxes(JailConfig(read_only_paths=(str(shown),)))
        source = (
            "import os, tempfile\n"
            f"print(open({str(shown / 'data')!r}).read())\n"
            "assert os.path.realpath('/tmp') == os.path.realpath(os.environ['TMPDIR'])\n"
            "assert 'left' not in os.listdir('/tmp')\n"
            "open('/tmp/left', 'w').write('x'); tempfile.mkdtemp()\n"
            f"try: open({str(shown / 'data')!r}, 'a')\n"
            "except OSError: print('closed')\n"
        )
        try:
            for _ in range(2):
                record = best.python(source)
                assert record.stdout.data == b"shown\nclosed\n", record
        finally:
            best.boxes.close()

    def test_pytest_is_served(self, runner: Runner) -> None:
        packages_reached(runner)
        found = discover(["pytest"])
        assert self_test(found, "pytest", runner.boxes, runner.pump) is None


class TestFetch:
    def test_files_come_back(self, runner: Runner) -> None:
        source = "import os; os.makedirs('out'); open('out/a.bin', 'wb').write(b'\\0\\1')"
        record = runner.python(source, fetch_paths=("out/a.bin", "absent"))
        assert [(f.path, f.content) for f in record.files] == [("out/a.bin", b"\0\1")]

    def test_only_the_program_s_own_plain_files(self, runner: Runner) -> None:
        source = (
            "import os\n"
            "os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe'); os.mkdir('dir')\n"
            "os.symlink('/etc', 'etc'); open('big', 'wb').write(bytes(2000))\n"
        )
        paths = ("link", "pipe", "dir", "etc/passwd", "../../../etc/passwd", "/etc/passwd", "big")
        assert runner.python(source, fetch_paths=paths, fetch_bytes=1000).files == ()

    def test_a_renamed_folder_changes_nothing(self, runner: Runner) -> None:
        source = (
            "import os; open('a', 'w').write('b'); here = os.getcwd(); os.rename(here, here + '2')"
        )
        record = runner.python(source, fetch_paths=("a",))
        assert record.end is EndKind.EXITED
        assert [f.content for f in record.files] == [b"b"]


class TestNothingIsLeft:
    def test_a_daemon_dies_with_its_run(self, runner: Runner) -> None:
        if runner.level == "confined":
            pytest.skip("no process can be started")
        source = (
            "import os, time\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        while True: time.sleep(0.01)\n"
            "    os._exit(0)\n"
            "os.wait()\n"
        )
        assert runner.python(source).ok
        alone = runner.python("import os; print(os.getppid() >= 0)")
        assert alone.ok
        assert not left_running(runner)

    def test_files_are_gone(self, runner: Runner) -> None:
        runner.python("import os; open('a', 'w'); open(os.environ['TMPDIR'] + '/b', 'w')")
        source = "import os; print(os.listdir('.'), 'b' in os.listdir(os.environ['TMPDIR']))"
        assert runner.python(source).stdout.data == b"['main.py'] False\n"

    def test_a_deep_tree_is_no_burden(self, runner: Runner) -> None:
        source = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')\n"
        assert runner.python(source).ok
        assert runner.python("print(1)").ok

    def test_no_run_finds_another_s_data_in_memory(self, best: Runner) -> None:
        namespaces_only(best)
        marker = "MARKER" + os.urandom(8).hex()
        assert best.python(f"secret = '{marker}'", stdin=marker.encode()).ok
        # It must not find what it is looking for in its own copy of these lines.
        source = (
            f"half = '{marker[:10]}'.encode(); rest = '{marker[10:]}'.encode()\n"
            "found = 0\n"
            "with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb') as memory:\n"
            "    for line in maps:\n"
            "        first, last = (int(n, 16) for n in line.split()[0].split('-'))\n"
            "        if 'r' not in line.split()[1] or '[v' in line: continue\n"
            "        memory.seek(first); data = memory.read(last - first)\n"
            "        at = data.find(half)\n"
            "        while at >= 0:\n"
            "            found += data[at + 10:].startswith(rest); at = data.find(half, at + 1)\n"
            "        del data\n"
            "print('found', found)\n"
        )
        assert best.python(source).stdout.data == b"found 0\n"

    def test_a_closed_box_leaves_no_process_group_or_folder(self) -> None:
        before = _census()
        made = Runner(REACHABLE[0])
        assert made.python("print(1)").ok
        made.pump.finish(made.start(script("print(2)"), made.boxes.tester()))
        assert _census() != before
        made.boxes.close()
        assert _census() == before

    def test_what_a_killed_supervisor_left_is_swept(self, runner: Runner) -> None:
        """At once: by another supervisor that starts; what its programs started is dead, too."""
        forks = "" if runner.level == "confined" else "import os\nos.fork()\n"
        source = f"{forks}import time\nprint(1, flush=True)\ntime.sleep(60)\n"
        script = (
            "import os\n"
            "from assay.sandbox.box import Pump\n"
            "from assay.sandbox.domain import BoxFile, RunMode, RunRequest\n"
            "from assay.sandbox.jail import JailBox, JailConfig\n"
            f"box = JailBox(JailConfig(level={runner.level!r}, python={SYSTEM_PYTHON!r}), 0, [])\n"
            f"file = BoxFile('main.py', {source.encode()!r})\n"
            "running = box.start(RunRequest(RunMode.PYTHON, ('main.py',), (file,)))\n"
            "pump = Pump()\n"
            "pump.add(running)\n"
            "while not running._stdout.output.data: pump.step()\n"
            "print(os.getpid(), box._users.program, flush=True)\n"
            "os.kill(running._link.pid, 9)\n"
            "os.kill(os.getpid(), 9)\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
        pid, user = done.stdout.split()
        JailBoxes(JailConfig(level=runner.level)).close()
        assert not _left_by(int(pid))
        deadline_s = time.monotonic() + 5
        while user.isdigit() and of_user(int(user)) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert not user.isdigit() or not of_user(int(user))

    def test_living_supervisors_are_not_swept(self, runner: Runner) -> None:
        running = runner.start(script("import time; time.sleep(0.5); print(1)"))
        held = _left_by(os.getpid())
        JailBoxes(JailConfig(level=runner.level)).close()
        assert _left_by(os.getpid()) == held
        assert runner.pump.finish(running).stdout.data == b"1\n"

    def test_it_is_swept_now_and_then(self, best: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        swept: list[bool] = []
        monkeypatch.setattr(
            "assay.sandbox.jail.cgroups.sweep", lambda *, everywhere: swept.append(everywhere)
        )
        for _ in range(3):
            best.boxes.candidate()
        assert swept == []
        monkeypatch.setattr(best.boxes, "_swept_s", best.boxes._swept_s - 3600)
        for _ in range(3):
            best.boxes.candidate()
        assert swept == [False]


class TestFaults:
    def test_a_killed_zygote_is_a_fault_and_the_next_run_is_fine(self, runner: Runner) -> None:
        running = runner.start(script("import time; time.sleep(30)"))
        os.kill(running._link.pid, signal.SIGKILL)
        with pytest.raises(SandboxFault, match="lost in the middle") as caught:
            runner.pump.finish(running)
        assert caught.value.reason == "WORKER_DIED"
        assert runner.python("print(1)").stdout.data == b"1\n"
        assert not left_running(runner)  # and it slept for half a minute yet

    @pytest.mark.skipif(bool(os.geteuid()), reason="only root ends another user's processes")
    def test_a_users_end_waits_for_no_thread_of_the_supervisor(self) -> None:
        """A bare fork of it would, where a thread had asked for the interpreter's lock."""
        ended, usual_s, user = threading.Event(), sys.getswitchinterval(), 62_001

        def spin() -> None:
            while not ended.is_set():
                pass

        sys.setswitchinterval(1e-5)
        spinning = [threading.Thread(target=spin) for _ in range(2)]
        for one in spinning:
            one.start()
        try:
            for _ in range(3):
                program = subprocess.Popen(["sleep", "60"], user=user)
                kill_user(sys.executable, user)
                assert program.wait(10) == -signal.SIGKILL
        finally:
            ended.set()
            sys.setswitchinterval(usual_s)
            for one in spinning:
                one.join()

    def test_an_idle_zygote_that_dies_costs_nothing(self, runner: Runner) -> None:
        assert runner.python("print(1)").ok
        link = runner.boxes._made[0]._link
        assert link is not None
        os.kill(link.pid, signal.SIGKILL)
        time.sleep(0.2)
        assert runner.python("print(2)").stdout.data == b"2\n"

    def test_a_child_that_dies_as_it_waits_costs_nothing(self, runner: Runner) -> None:
        assert runner.python("print(1)").ok
        link = runner.boxes._made[0]._link
        assert link is not None
        for _ in range(
            3
        ):  # without a tmpfs to drop, the next child waits for the supervisor's word
            for waiting in descendants(link.pid):
                os.kill(waiting, signal.SIGKILL)
            time.sleep(0.2)
        record = runner.python("print(2)")
        assert record.stdout.data == b"2\n", record

    def test_an_abandoned_run_is_ended_before_the_next(self, runner: Runner) -> None:
        # Killed at once, it may not have taken its job yet: the next run must not get that.
        for number in range(20):
            runner.boxes.candidate().start(script("import time; time.sleep(60)"))
            assert runner.python(f"print({number})").stdout.data == f"{number}\n".encode()

    def test_a_kill_that_comes_too_late_hits_nobody(self, runner: Runner) -> None:
        running = runner.start(script("print(1)"))
        runner.pump.finish(running)
        for _ in range(20):
            running._link.kill_run(running._number)
            assert runner.python("print(1)").ok

    def test_an_asked_for_kill_names_its_end(self, runner: Runner) -> None:
        running = runner.start(script("import time; time.sleep(60)"))
        running.kill(EndKind.MEMORY_LIMIT, "asked")
        record = runner.pump.finish(running)
        assert (record.end, record.detail) == (EndKind.MEMORY_LIMIT, "asked")

    def test_a_zygote_that_cannot_come_up_says_why(self, tmp_path: Path) -> None:
        bad = tmp_path / "python"
        bad.write_text("#!/bin/sh\necho no interpreter here >&2\nexit 3\n")
        bad.chmod(0o755)
        box = JailBox(JailConfig(python=str(bad), level=REACHABLE[0]), 0, [])
        with pytest.raises(LaunchError, match="no interpreter here"):
            box.build()
        with pytest.raises(SandboxFault, match="cannot build a box"):
            box.start(script("print(1)"))
        box.close()

    def test_two_boxes_run_side_by_side(self, best: Runner) -> None:
        source = "import time; time.sleep(0.4)"
        started = time.monotonic()
        first = best.start(script(source))
        second = best.start(script(source), best.boxes.tester())
        assert best.pump.finish(first).ok
        assert best.pump.finish(second).ok
        assert time.monotonic() - started < 10


def test_what_was_found_is_told_by_name() -> None:
    assert FOUND.level == REACHABLE[0]
    assert {"seccomp", "no-new-privileges", "rlimits"} <= set(FOUND.layers)
    for name, reason in FOUND.missing:
        assert name not in FOUND.layers
        assert len(reason) > 10


def _left_by(pid: int) -> list[str]:
    groups = Path("/sys/fs/cgroup").glob(f"*/**/assay-box-{pid}-*")
    folders = Path("/tmp").glob(f"assay-box-{pid}-*")
    return [str(path) for path in (*groups, *folders)]


def _census() -> tuple[int, list[str], list[str], int]:
    tasks = Path("/proc/self/task").iterdir()
    children = sum(len((task / "children").read_text().split()) for task in tasks)
    groups = sorted(str(p) for p in Path("/sys/fs/cgroup").glob(f"*/**/assay-box-{os.getpid()}-*"))
    folders = sorted(str(p) for p in Path("/tmp").glob(f"assay-box-{os.getpid()}-*"))
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return children, groups, folders, descriptors
