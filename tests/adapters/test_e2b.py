"""E2B's own clients, pointed at a sandbox: code, contexts, files, commands, forks, and faults."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import process_tree
import sandbox_http_support
import sandbox_service

e2b = pytest.importorskip("e2b", reason="see `make test-adapters`")
interpreter = pytest.importorskip("e2b_code_interpreter", reason="see `make test-adapters`")

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

TOKEN = "the-token-of-a-test"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with sandbox_http_support.sandbox() as address:
        yield address


@contextlib.contextmanager
def opened(address: str, key: str = "e2b_" + 40 * "0", **options: Any) -> Iterator[Any]:
    """A sandbox of the real client, killed at the end."""
    url = f"http://{address}"
    box = interpreter.Sandbox.create(api_url=url, sandbox_url=url, api_key=key, **options)
    try:
        yield box
    finally:
        box.kill()


@pytest.fixture
def box(server: str) -> Iterator[Any]:
    with opened(server, envs={"A": "b"}, metadata={"row": "7"}) as found:
        yield found


def test_what_a_cell_writes_and_shows_comes_as_it_does(box: Any) -> None:
    seen: list[Any] = []
    execution = box.run_code(
        "import os, sys\nx = 41\nprint('é', os.environ['A'])\nprint('e', file=sys.stderr)\nx + 1",
        on_stdout=lambda message: seen.append(("stdout", message.line)),
        on_stderr=lambda message: seen.append(("stderr", message.line)),
        on_result=lambda result: seen.append(("result", result.text)),
    )
    assert sorted(seen) == [("result", "42"), ("stderr", "e\n"), ("stdout", "é b\n")]
    assert (execution.text, execution.error, execution.execution_count) == ("42", None, 1)
    shown = box.run_code(
        "class P:\n    def _repr_html_(self): return '<b>'\n"
        "    def _repr_png_(self): return b'\\x89PNG'\ndisplay(P())\nP()"
    )
    forms = [(one.html, one.png, one.is_main_result) for one in shown.results]
    assert forms == [("<b>", "iVBORw==", False), ("<b>", "iVBORw==", True)]
    failed: list[Any] = []
    error = box.run_code("1 / 0", on_error=failed.append).error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")
    assert "1 / 0" in error.traceback
    assert failed == [error]


def test_contexts_have_states_of_their_own(box: Any) -> None:
    box.run_code("x = 1")
    other = box.create_code_context(cwd="/home/user/sub")
    assert box.run_code("x = 2; __import__('os').path.basename(__import__('os').getcwd())",
                        context=other).text == "sub"  # fmt: skip
    assert box.run_code("x").text == "1"
    assert [one.id for one in box.list_code_contexts()][1:] == [other.id]
    box.restart_code_context(other)
    assert box.run_code("x", context=other).error.name == "NameError"
    box.remove_code_context(other)
    assert len(box.list_code_contexts()) == 1
    assert box.run_code("Y=3; echo $((Y * 14))", language="bash").logs.stdout == ["42\n"]
    with pytest.raises(e2b.SandboxException, match="not served"):
        box.run_code("1", language="r")


def test_variables_of_one_run_are_gone_in_the_next(box: Any) -> None:
    code = "import os; (os.environ.get('A'), os.environ.get('Q'))"
    assert box.run_code(code, envs={"A": "c", "Q": "q"}).text == "('c', 'q')"
    assert box.run_code(code).text == "('b', None)"


def test_files_are_those_of_the_interpreter(box: Any) -> None:
    data = bytes(range(256)) + b"\r\n--\r\n"
    box.files.write("/home/user/d/a.bin", data)
    box.files.write_files([{"path": "one", "data": "1"}, {"path": "two", "data": b"2"}])
    assert box.files.read("d/a.bin", format="bytes") == data
    assert box.run_code("len(open('/home/user/d/a.bin', 'rb').read())").text == str(len(data))
    box.run_code("import os; os.chdir('/tmp'); open(os.path.expanduser('~/new'), 'w').write('n')")
    assert box.files.read("new") == "n"
    paths = [entry.path for entry in box.files.list("/home/user", depth=2)]
    assert sorted(paths) == [f"/home/user/{name}" for name in ("d", "d/a.bin", "new", "one", "two")]
    assert (box.files.exists("d"), box.files.exists("absent")) == (True, False)
    assert box.files.get_info("d/a.bin").size == len(data)
    assert (box.files.make_dir("m"), box.files.make_dir("m")) == (True, False)
    assert box.files.rename("one", "m/1").path == "/home/user/m/1"
    box.files.remove("m")
    assert not box.files.exists("m/1")
    with pytest.raises(e2b.FileNotFoundException):
        box.files.read("absent")
    with pytest.raises(e2b.InvalidArgumentException):
        box.files.read("/etc/passwd")


def test_commands_run_in_the_same_place(box: Any) -> None:
    box.files.write("d/f", "text")
    seen: list[str] = []
    ran = box.commands.run(
        "cat f; echo $Q; echo e >&2", cwd="/home/user/d", envs={"Q": "q"}, on_stdout=seen.append
    )
    assert (ran.stdout, ran.stderr, ran.exit_code) == ("textq\n", "e\n", 0)
    assert "".join(seen) == "textq\n"
    with pytest.raises(e2b.CommandExitException) as failed:
        box.commands.run("exit 3")
    assert failed.value.exit_code == 3
    with pytest.raises(e2b.SandboxException, match="only Start"):
        box.commands.kill(1)


def test_a_run_that_its_client_gives_up_is_interrupted(box: Any) -> None:
    box.run_code("x = 1")
    with pytest.raises(e2b.TimeoutException):
        box.run_code("while True: pass", timeout=1)
    assert box.run_code("x").text == "1"


def test_a_fork_has_the_state_and_goes_its_own_way(box: Any) -> None:
    box.run_code("x = 41; open('f', 'w').write('f');")
    copies = box.fork(count=2)
    for number, copy in enumerate(copies):
        assert copy.run_code(f"x += {number}; x").text == str(41 + number)
        assert copy.files.read("f") == "f"
        assert copy.kill()
    assert box.run_code("x").text == "41"
    box.run_code("import threading; t = threading.Thread(target=input); t.start()")
    box.run_code("import time, threading\nthreading.Thread(target=time.sleep, args=(600,)).start()")
    with pytest.raises(e2b.SandboxException, match="CANNOT_FORK"):
        box.fork()


def test_a_sandbox_is_found_again_and_lives_as_long_as_it_is_told(server: str, box: Any) -> None:
    box.run_code("x = 1")
    url = f"http://{server}"
    options = {"api_url": url, "sandbox_url": url, "api_key": "e2b_" + 40 * "0"}
    assert interpreter.Sandbox.connect(box.sandbox_id, **options).run_code("x").text == "1"
    box.set_timeout(200)
    info = box.get_info()
    assert info.metadata == {"row": "7"}
    assert 190 < (info.end_at - info.started_at).total_seconds() < 260
    listed = interpreter.Sandbox.list(**options).next_items()
    assert box.sandbox_id in [one.sandbox_id for one in listed]
    box.set_timeout(1)
    time.sleep(3)  # a call would begin it anew
    with pytest.raises(e2b.TimeoutException, match="LEASE_EXPIRED"):
        box.run_code("x")


async def test_the_asynchronous_client_does_the_same(server: str) -> None:
    url = f"http://{server}"
    box = await interpreter.AsyncSandbox.create(
        api_url=url, sandbox_url=url, api_key="e2b_" + 40 * "0"
    )
    cells = [box.run_code(f"x = {number}; x") for number in range(5)]
    assert [one.text for one in await asyncio.gather(*cells)] == list("01234")
    running = await box.commands.run("echo a; sleep 0.2; echo b", background=True)
    assert (await running.wait()).stdout == "a\nb\n"
    [copy] = await box.fork()
    assert (await copy.run_code("x in range(5)")).text == "True"
    assert (await copy.kill(), await box.kill()) == (True, True)


def test_a_killed_sandbox_is_not_there(server: str) -> None:
    with opened(server) as box:
        assert box.is_running()
        assert box.kill()
        assert not box.is_running()
        assert not box.kill()
        with pytest.raises(e2b.TimeoutException):
            box.run_code("1")
        with pytest.raises(e2b.SandboxException, match="was not found"):
            box.files.read("f")


def test_what_the_program_ends_is_said_and_does_not_come_back(box: Any) -> None:
    error = box.run_code("import os; os._exit(3)").error
    assert error.name == "SessionEnded"
    with pytest.raises(e2b.SandboxException, match="SESSION_ENDED"):
        box.run_code("1")


@pytest.mark.parametrize("code", ["1", "print(1, flush=True); __import__('time').sleep(60)"])
def test_a_lost_session_is_an_exception_never_an_empty_result(code: str) -> None:
    with sandbox_service.running("--http-port", "0") as (_, process):
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        with opened(address) as box:
            box.run_code("x = 1")

            def kill() -> None:
                for pid in process_tree.descendants(process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

            late = threading.Timer(1.0 if "sleep" in code else 0.0, kill)
            late.start()
            if "sleep" not in code:
                late.join()
            with pytest.raises(Exception) as failed:  # noqa: PT011 - the client's, or of its wire
                box.run_code(code)
            late.join()
            assert "SESSION_" in str(failed.value) or "sleep" in code
            with pytest.raises(e2b.SandboxException, match=r"SESSION_|not found"):
                box.files.read("f")


def test_the_servers_token_is_the_clients_key(tmp_path: Any) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    with (
        sandbox_http_support.sandbox("--token-file", str(file)) as address,
        opened(address, TOKEN) as box,
    ):
        assert box.run_code("6 * 7").text == "42"
        context = box.create_code_context()
        box.files.write("f", "x")
        assert box.commands.run("cat f").stdout == "x"
        box.remove_code_context(context)
        answer = sandbox_http_support.post(
            address, "/execute", {"code": "1"}, e2b_sandbox_id=box.sandbox_id
        )
        assert answer.status == 401
