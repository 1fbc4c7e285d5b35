"""`assay audit` on real graders over real wires: exit codes, files, resuming, faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run
from assay.clients import EmbeddedServices
from assay.reward_server.reliability import load_reliability

ROWS = [
    {"prompt": "What is 3 + 4?", "reference": "7"},
    {"prompt": "How many days has a leap year?", "reference": "366", "answer": "366"},
    {"prompt": "Which city is the capital of France?", "reference": "Paris"},
    {"prompt": "Pick one.\nA) red\nB) blue\nC) green\nD) grey", "reference": "B"},
]
GRADERS = """
import os, time

def exact(response, reference):
    return float(response.strip() == reference)

def within(response, reference):
    return float(reference in response)

def other_names(answer, gold):
    return 1.0 if answer.strip() == gold else 0.0

def trl(completions, answer, **columns):
    return [float(one.strip() == right) for one, right in zip(completions, answer)]

def raises(response, reference):
    raise RuntimeError("no")

def ends(response, reference):
    os._exit(3)

def number(response, reference):
    assert isinstance(reference, int)
    return float(response.strip() == str(reference))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("audit")
    (made / "graders_for_audit.py").write_text(GRADERS)
    write(made / "rows.jsonl", ROWS)
    write(made / "numbers.jsonl", [{"prompt": "3 + 4?", "reference": 7}] * 2)
    write(made / "trl.jsonl", [{**row, "answer": row["reference"]} for row in ROWS])
    return made


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def audited(folder: Path, target: str, *more: str, data: str = "rows.jsonl") -> tuple[int, Any]:
    """The exit code and the report."""
    out = folder / "report.json"
    out.unlink(missing_ok=True)
    given = ["audit", target, "--data", str(folder / data), "--json", str(out), *more]
    code = run([*given, "--engine", "floor", "--engine", "panel", "--engine", "metamorphic"])
    return code, json.loads(out.read_text()) if out.exists() else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("exact", "rows.jsonl", 0), ("within", "rows.jsonl", 1), ("other_names", "rows.jsonl", 0),
        ("trl", "trl.jsonl", 0), ("raises", "rows.jsonl", 2), ("number", "numbers.jsonl", 0),
    ],
)  # fmt: skip
def test_functions_of_a_file(folder: Path, name: str, data: str, code: int) -> None:
    found, report = audited(folder, f"{folder}/graders_for_audit.py:{name}", data=data)
    assert found == code
    summary = report["results"][0]["measured"]
    assert summary["exit_code"] == code
    if code == 0:
        assert summary["faults"] == {}
        assert summary["false_positive"]["value"] == 0
    if code == 2:
        assert sum(summary["faults"].values()) == summary["asked"]


@pytest.mark.slow
def test_a_grader_that_kills_its_process_is_a_fault(folder: Path) -> None:
    code, report = audited(folder, f"{folder}/graders_for_audit.py:ends", "--calls", "60")
    assert code == 2
    assert sum(report["results"][0]["measured"]["faults"].values()) > 0


@pytest.mark.slow
def test_an_object_of_a_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    assert audited(folder, "graders_for_audit:other_names")[0] == 0
    assert audited(folder, "graders_for_audit:trl", data="trl.jsonl")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        ["audit", "absent.py:f", "--data", "rows.jsonl"],
        ["audit", "math", "--data", "absent.jsonl"],
        ["audit", "no-such-verifier", "--data", "rows.jsonl"],
        ["audit", "math", "--data", "rows.jsonl", "--json", "absent/report.json"],
        ["audit", "math"],
    ],
)
def test_what_cannot_be_run_is_2(
    folder: Path, given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(folder)
    assert run(given) == 2
    assert capsys.readouterr().err.startswith("assay: error: ")


@pytest.mark.slow
def test_a_verifier_of_a_server_that_runs_and_a_page(folder: Path) -> None:
    with EmbeddedServices() as services:
        page = folder / "report.html"
        code, report = audited(
            folder, "exact", "--target", services.address, "--html", str(page), "--params",
            "case_sensitive=true",
        )  # fmt: skip
    assert code == 0
    assert report["results"][0]["measured"]["accepts_from"] == 0.5
    assert "No hole found." in page.read_text()


@pytest.mark.slow
def test_measured_rates_are_written_for_a_server(folder: Path, capsys: Any) -> None:
    file, data = folder / "rates.json", folder / "labelled.jsonl"
    row = {"prompt": "2 + 2?", "reference": ["4", "IV"], "right": "4", "wrong": ["5", "IV"]}
    write(data, [row])
    more = ["--reliability", str(file), "--calls", "400"]
    assert audited(folder, "exact", *more, "--domain", "sums", data="labelled.jsonl")[0] == 1
    assert audited(folder, "exact", *more)[0] == 0
    assert audited(folder, "exact", *more)[0] == 0
    labelled, whole = load_reliability([file])["exact"][::-1]
    assert (labelled.domain, labelled.truth) == ("sums", "labels")
    assert labelled.false_positive is not None
    assert (labelled.false_positive.value, labelled.false_positive.responses) == (0.5, 2)
    assert (whole.domain, whole.truth) == ("all", "construction")
    assert whole.false_positive is not None
    assert whole.false_positive.value == 0 < whole.false_positive.high
    with EmbeddedServices(["reward"], arguments={"reward": ["--reliability", str(file)]}) as served:
        capsys.readouterr()
        assert run(["verifiers", "exact", "--target", served.address]) == 0
        assert "on sums" in capsys.readouterr().out
    assert run(["audit", "x.py:f", "--data", str(data), *more]) == 2
    file.write_text("{}")
    assert run(["audit", "exact", "--data", str(data), *more]) == 2


@pytest.mark.slow
def test_an_interrupted_audit_goes_on(folder: Path) -> None:
    state = folder / "state.jsonl"
    target = f"{folder}/graders_for_audit.py:within"
    code, whole = audited(folder, target, "--state", str(state))
    assert code == 1
    lines = state.read_text().splitlines(keepends=True)
    assert len(lines) > 100
    # What an interruption leaves: some answers, and where they come from.
    audited(folder, target, "--state", str(state), "--calls", "80")
    origin = json.dumps(_origin(folder, target, whole), sort_keys=True)
    (folder / "state.jsonl.partial").write_text("".join(lines[:100]))
    (folder / "state.jsonl.partial.json").write_text(origin)
    code, resumed = audited(folder, target, "--state", str(state))
    assert code == 1
    for one in (*whole["results"], *resumed["results"]):
        one.pop("duration_s")
    assert resumed == whole
    assert state.read_text().splitlines(keepends=True)[:100] == lines[:100]


def _origin(folder: Path, target: str, report: Any) -> dict[str, Any]:
    from assay.audit.graders import ServerAt, reached, read_target
    from assay.cli.commands.audit import read_audit_rows

    rows, digest = read_audit_rows(str(folder / "rows.jsonl"))
    with reached(read_target(target), rows, ServerAt()) as there:
        version = there.version
    assert digest == report["source_digest"]
    return {"lines": 1, "rows": digest, "target": target, "version": version, "params": {}}


@pytest.fixture
def openrlhf() -> Iterator[str]:
    """A reward model in OpenRLHF's form that pays any digit, and breaks at a word."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = body["query"][0].removeprefix(body["prompts"][0])
            if "answer" in response:
                self.send_error(500)
                return
            text = json.dumps({"rewards": [float(any(c.isdigit() for c in response))]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/get_reward"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_openrlhf_url(folder: Path, openrlhf: str) -> None:
    code, report = audited(folder, openrlhf, "--rows", "2")
    assert code == 1
    failed = {one["measured"].get("class") for one in report["results"] if one["status"] == "fail"}
    assert {"other-row", "off-by-one"} <= failed
    assert report["results"][0]["measured"]["faults"]["UNREACHABLE"] > 0


@pytest.mark.slow
def test_programs_are_judged_by_their_tests(folder: Path) -> None:
    right = "def double(x):\n    return x * 2\n"
    weak = {"tests": [{"args": [2], "expected": 4}, {"args": [0], "expected": 0}]}
    rows = [{"prompt": "Double it.", "tests": {**weak, "function": "double"}, "right": right}]
    write(folder / "programs.jsonl", rows)
    out = folder / "programs.json"
    given = ["audit", "code", "--data", str(folder / "programs.jsonl"), "--json", str(out)]
    assert run(given) == 0
    said = {one["measured"].get("class"): one for one in json.loads(out.read_text())["results"]}
    assert said["given-right"]["measured"]["unwanted"] == 0
    assert said["program"]["measured"]["asked"] > 8
    assert said["program"]["status"] == said["mutant"]["status"] == "pass"
    assert said["mutant"]["measured"]["asked"] > 0
