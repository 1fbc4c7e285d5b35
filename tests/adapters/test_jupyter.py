"""Jupyter's own client of a server's kernels, pointed at a sandbox."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

import process_tree
import sandbox_http_support
import sandbox_service

client = pytest.importorskip("jupyter_kernel_client", reason="see `make test-adapters`")

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

TOKEN = "the-token-of-a-test"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with sandbox_http_support.sandbox() as address:
        yield f"http://{address}"


@contextlib.contextmanager
def started(url: str, token: str = TOKEN, name: str = "python3") -> Iterator[Any]:
    """A kernel of the real client, ended with it."""
    kernel = client.JupyterKernelClient(server_url=url, token=token)
    kernel.start(name=name)
    try:
        yield kernel
    finally:
        key = {"Authorization": f"token {token}"}
        requests.delete(f"{url}/api/kernels/{kernel.id}", headers=key, timeout=30)
        # Its own end waits ten seconds for its own thread.
        threading.Thread(target=kernel.stop, args=(False,), daemon=True).start()


@pytest.fixture
def kernel(server: str) -> Iterator[Any]:
    with started(server) as found:
        yield found


def outputs(kernel: Any, code: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kernel.execute(code, timeout=60)["outputs"]
    return found


def value(kernel: Any, code: str) -> str:
    [output] = outputs(kernel, code)
    return str(output["data"]["text/plain"])


def test_a_cell_streams_shows_and_has_a_value(kernel: Any) -> None:
    assert kernel.kernel_info["language_info"]["name"] == "python"
    answer = kernel.execute("import sys; x = 41; print('é'); print('e', file=sys.stderr); x + 1")
    assert (answer["status"], answer["execution_count"]) == ("ok", 1)
    by_kind = {each.get("name", each["output_type"]): each for each in answer["outputs"]}
    assert (by_kind["stdout"]["text"], by_kind["stderr"]["text"]) == ("é\n", "e\n")
    assert by_kind["execute_result"]["data"] == {"text/plain": "42"}
    assert value(kernel, "x") == "41"
    shown = outputs(
        kernel,
        "class P:\n    def _repr_html_(self): return '<b>'\n"
        "    def _repr_png_(self): return b'\\x89PNG'\ndisplay(P())\nP()",
    )
    assert [each["output_type"] for each in shown] == ["display_data", "execute_result"]
    for each in shown:
        assert (each["data"]["text/html"], each["data"]["image/png"]) == ("<b>", "iVBORw==")


def test_an_exception_is_an_error_and_the_next_cell_runs(kernel: Any) -> None:
    answer = kernel.execute("x = 1\n1 / 0")
    [error] = answer["outputs"]
    assert (answer["status"], error["ename"], error["evalue"]) == (
        "error",
        "ZeroDivisionError",
        "division by zero",
    )
    assert error["traceback"][-1] == "ZeroDivisionError: division by zero"
    assert value(kernel, "x") == "1"


def test_an_interrupt_ends_the_cell_and_no_more(kernel: Any) -> None:
    kernel.execute("x = 1")
    late = threading.Timer(1.0, kernel.interrupt)
    late.start()
    [error] = outputs(kernel, "while True: pass")
    late.join()
    assert error["ename"] == "KeyboardInterrupt"
    assert value(kernel, "x") == "1"


def test_a_restart_begins_anew_and_keeps_the_files(kernel: Any) -> None:
    kernel.execute("x = 1; open('f', 'w').write('kept');")
    kernel.restart()
    assert outputs(kernel, "x")[0]["ename"] == "NameError"
    assert value(kernel, "open('f').read()") == "'kept'"


def test_bash_is_a_kernel_too(server: str) -> None:
    with started(server, name="bash") as kernel:
        kernel.execute("Y=3")
        assert outputs(kernel, "echo $((Y * 14))")[0]["text"] == "42\n"


def test_kernels_are_listed_until_they_are_ended(server: str) -> None:
    with started(server) as kernel:
        model = requests.get(f"{server}/api/kernels/{kernel.id}", timeout=30).json()
        assert (model["execution_state"], model["connections"]) == ("idle", 1)
        found = requests.get(f"{server}/api/kernels", timeout=30).json()
        assert kernel.id in [each["id"] for each in found]
        specs = requests.get(f"{server}/api/kernelspecs", timeout=30).json()
        assert sorted(specs["kernelspecs"]) == ["bash", "python3"]
    assert requests.get(f"{server}/api/kernels/{kernel.id}", timeout=30).status_code == 404
    assert requests.post(f"{server}/api/kernels", json={"name": "R"}, timeout=30).status_code == 404


def test_what_the_program_ends_is_said(kernel: Any) -> None:
    assert outputs(kernel, "import os; os._exit(3)")[0]["ename"] == "SessionEnded"
    assert outputs(kernel, "1")[0]["ename"] == "SESSION_ENDED"
    kernel.restart()
    assert value(kernel, "1") == "1"


def test_a_lost_kernel_is_an_error_never_an_empty_result() -> None:
    with sandbox_service.running("--http-port", "0") as (_, process):
        assert process.stdout is not None
        url = f"http://{process.stdout.readline().split()[-1]}"
        with started(url) as kernel:
            kernel.execute("x = 1")

            def kill() -> None:
                for pid in process_tree.descendants(process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

            late = threading.Timer(1.0, kill)
            late.start()
            [written, error] = outputs(kernel, "print(1, flush=True); import time; time.sleep(60)")
            late.join()
            assert (written["text"], error["ename"]) == ("1\n", "SESSION_LOST")
            assert requests.get(f"{url}/api/kernels/{kernel.id}", timeout=30).status_code == 404


def test_the_servers_token_opens_the_channels(tmp_path: Any) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    with sandbox_http_support.sandbox("--token-file", str(file)) as address:
        with started(f"http://{address}") as kernel:
            assert value(kernel, "6 * 7") == "42"
        with pytest.raises(requests.HTTPError), started(f"http://{address}", "wrong"):
            pass
