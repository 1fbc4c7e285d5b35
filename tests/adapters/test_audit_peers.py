"""`assay audit` on what peers bring: Inspect's scorers, verifiers' tasksets, NeMo Gym's URL."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verifiers.v1.envs", reason="see `make test-adapters`")
pytest.importorskip("inspect_ai", reason="see `make test-adapters`")
pytest.importorskip("nemo_gym", reason="see `make test-adapters`")

from assay.cli.main import run

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

ROWS = [("What is 3 + 4?", "7"), ("Which city is the capital of France?", "Paris")]


def audited(folder: Path, target: str, *more: str) -> tuple[int, dict[str, Any], set[str]]:
    """The exit code, the summary, and the classes with holes."""
    data, out = folder / "rows.jsonl", folder / "report.json"
    lines = [json.dumps({"prompt": prompt, "reference": right}) for prompt, right in ROWS]
    data.write_text("\n".join(lines))
    given = ["audit", target, "--data", str(data), "--json", str(out)]
    code = run([*given, "--engine", "floor", "--engine", "panel", *more])
    report = json.loads(out.read_text())
    failed = {one["measured"].get("class") for one in report["results"] if one["status"] == "fail"}
    return code, report["results"][0]["measured"], failed - {None}


def test_a_scorer_of_inspect(tmp_path: Path) -> None:
    code, summary, _ = audited(tmp_path, "inspect_ai.scorer:exact")
    assert (code, summary["faults"]) == (0, {})
    code, summary, failed = audited(tmp_path, "inspect_ai.scorer:includes")
    assert code == 1
    assert "enumeration" in failed


def test_a_taskset_of_verifiers(tmp_path: Path) -> None:
    file = Path(__file__).with_name("hosted_peers.py")
    code, summary, _ = audited(tmp_path, f"{file}:taskset", "--calls", "200")
    assert (code, summary["faults"]) == (0, {})
    assert summary["accepts_from"] == 0.75  # half of what a right and brief answer gets


@pytest.fixture
def gym() -> Iterator[str]:
    """A resources server that NeMo Gym ships, as it serves itself."""
    import uvicorn

    from adapters.hosted_peers import server

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = uvicorn.Server(uvicorn.Config(server().setup_webserver(), log_level="error"))
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/verify"
        serving.should_exit = True
        thread.join()


def test_a_resources_server_of_nemo_gym(tmp_path: Path, gym: str) -> None:
    code, summary, _ = audited(tmp_path, gym, "--calls", "200")
    assert (code, summary["faults"]) == (0, {})
    assert summary["false_negative"]["value"] < 1
