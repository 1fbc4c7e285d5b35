"""Bombs, and other ways to lose the box: each is a limit of the program's, and no fault."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from assay.sandbox.domain import EndKind, RunMode, RunRequest, SandboxFault
from sandbox_jail_support import REACHABLE, Runner, left_running, script
from waiting_support import exists

pytestmark = pytest.mark.skipif(not REACHABLE, reason="no level of isolation works here")


@pytest.fixture(scope="module", params=REACHABLE)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    made = Runner(request.param)
    yield made
    made.boxes.close()


LIMITS_OF_BOMBS = {
    *(EndKind.WALL_TIME_LIMIT, EndKind.CPU_TIME_LIMIT, EndKind.MEMORY_LIMIT),
    EndKind.PROCESS_LIMIT,
}
BOMBS = {
    "forks": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n",
    "threads": (
        "import threading, time\n"
        "while True:\n"
        "    try: threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    except RuntimeError: pass\n"
    ),
    "forks in threads": (
        "import os, threading\n"
        "def go():\n"
        "    while True:\n"
        "        try: os.fork()\n"
        "        except OSError: pass\n"
        "for _ in range(8):\n"
        "    try: threading.Thread(target=go).start()\n"
        "    except RuntimeError: pass\n"
        "go()\n"
    ),
}


class TestNoProgramChoosesAFault:
    @pytest.mark.parametrize("bomb", BOMBS)
    def test_a_bomb_ends_at_a_limit(self, runner: Runner, bomb: str) -> None:
        for turn in range(6):
            record = runner.python(BOMBS[bomb], wall_s=0.4, processes=16 + 48 * (turn % 2))
            assert record.end in LIMITS_OF_BOMBS, record
            assert runner.python("print(1)").stdout.data == b"1\n"
        assert not left_running(runner)

    def test_a_hundred_processes_have_the_share_of_one(self, runner: Runner) -> None:
        """Where groups of CPU shares can be made, a box has one."""
        running = runner.start(script("import time; time.sleep(0.2)"))
        folders = getattr(running._group, "_folders", ())
        shares = [folder for folder in folders if (folder / "cpu.shares").exists()]
        listed = [(folder / "cgroup.procs").read_text().split() for folder in shares]
        runner.pump.finish(running)
        if not shares:
            pytest.skip("no group of CPU shares can be made here")
        assert [str(running._link.pid) in processes for processes in listed] == [True]

    def test_a_box_that_is_lost_at_a_limit_leaves_the_verdict(self, runner: Runner) -> None:
        running = runner.start(script("import time; time.sleep(30)"))
        running.kill(EndKind.WALL_TIME_LIMIT, "asked")
        zygote = running._link.pid
        os.kill(zygote, signal.SIGKILL)
        assert runner.pump.finish(running).end is EndKind.WALL_TIME_LIMIT
        while exists(zygote):  # a busy kernel takes its time; a run begun before would be lost
            time.sleep(0.01)
        assert runner.python("print(1)").stdout.data == b"1\n"

    def test_what_a_lost_box_started_is_dead(self, runner: Runner) -> None:
        if runner.level == "confined":
            pytest.skip("no process can be started")
        forks = "import os, time\nfor _ in range(3): os.fork()\nprint(1, flush=True)\n"
        running = runner.start(script(forks + "time.sleep(60)"))
        while len(running._stdout.output.data) < 16:
            runner.pump.step()
        os.kill(running._link.pid, signal.SIGKILL)
        with pytest.raises(SandboxFault):
            runner.pump.finish(running)
        assert not left_running(runner)

    def test_a_folder_that_it_closes_behind_itself(self, runner: Runner) -> None:
        source = (
            "import os\n"
            "os.makedirs('a/b')\n"
            "for path in ('a/b', 'a', '.', '..'):\n"
            "    try: os.chmod(path, 0)\n"
            "    except OSError: pass\n"
        )
        for number in range(5):
            assert runner.python(source).end is EndKind.EXITED
            assert runner.python(f"print({number})").stdout.data == f"{number}\n".encode()

    def test_an_executable_that_is_none(self, runner: Runner) -> None:
        executable = os.memfd_create("program")
        try:
            os.write(executable, b"no program")
            os.fchmod(executable, 0o755)
            request = RunRequest(RunMode.EXEC, ("./program",), executable=executable)
            record = runner.pump.finish(runner.start(request))
        finally:
            os.close(executable)
        assert (record.end, record.exit_code) == (EndKind.EXITED, 126)
        assert b"./program cannot be executed" in record.stderr.data

    def test_a_text_that_is_larger_than_its_disk(self, runner: Runner) -> None:
        record = runner.python("#" * 100_000, disk_bytes=20_000)
        assert (record.end, record.exit_code) == (EndKind.EXITED, 1)
        assert b"File too large" in record.stderr.data
