"""`assay score` as a process of its own, over the wire."""

from __future__ import annotations

import gzip
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

from assay.cli.main import run
from assay.cli.scoring.rows import OUTPUT_KEYS
from assay.clients.testing import FakeRewardServer, Knobs

Rows = list[dict[str, Any]]


def assay(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command and waits for it."""
    command = [sys.executable, "-c", "from assay.cli.__main__ import main; main()"]
    command += map(str, arguments)
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.fixture(scope="module")
def server() -> Iterator[FakeRewardServer]:
    with FakeRewardServer() as fake:
        yield fake


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(rows: Rows, name: str = "in.jsonl") -> Path:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def read(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows(count: int) -> Rows:
    return [{"id": f"r{n}", "response": str(n % 2), "reference": "1"} for n in range(count)]


def test_rows_come_back_in_order_with_rewards(
    server: FakeRewardServer, write: Callable[..., Path], tmp_path: Path
) -> None:
    source = write([{**row, "extra": {"n": 1}, "text": "é"} for row in rows(300)], "in.jsonl.gz")
    out = tmp_path / "out.jsonl"
    done = assay("score", source, "-o", out, "--verifier", "exact", "--target", server.address)
    assert (done.returncode, done.stdout) == (0, "")
    assert "mean reward" in done.stderr
    assert "0.5000" in done.stderr
    scored = read(out)
    assert [row["id"] for row in scored] == [f"r{n}" for n in range(300)]
    assert [row["reward"] for row in scored] == [float(n % 2) for n in range(300)]
    assert scored[1]["extra"] == {"n": 1}
    assert scored[1]["verdict"] == "correct"
    assert scored[1]["answer"] == "1"
    assert scored[1]["fault"] is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl.gz", "out.jsonl"]


def test_other_keys_stdin_and_stdout(server: FakeRewardServer) -> None:
    row = {"problem": "1+1?", "answer": "2", "pred": "2"}
    keys = ("--response-key", "pred", "--reference-key", "answer", "--prompt-key", "problem")
    known = ("--target", server.address, "--task", "exact")
    done = assay("score", "-", "-o", "-", *keys, *known, stdin=json.dumps(row) + "\n\n")
    assert done.returncode == 0, done.stderr
    (scored,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert scored["id"] == 1
    assert scored["input_answer"] == "2"
    assert scored["answer"] == "2"
    assert scored["reward"] == 1.0
    assert "input_answer" in done.stderr


def test_faults_are_counted_and_may_fail_the_command(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    with FakeRewardServer(knobs=Knobs(fault_ids=frozenset({"r1"}))) as fake:
        common = (
            "score",
            write(rows(3)),
            "-o",
            out,
            "--verifier",
            "exact",
            "--target",
            fake.address,
        )
        assert assay(*common).returncode == 0
        strict = assay(*common, "--fail-on-fault")
    assert strict.returncode == 1
    assert "fault VERIFIER_FAILED" in strict.stderr
    faulted = read(out)[1]
    first = f"VERIFIER_FAILED, first in row 2: {faulted['fault']['message']}"
    assert first in " ".join(strict.stderr.split())
    assert faulted["reward"] is None
    assert faulted["fault"]["reason"] == "VERIFIER_FAILED"
    assert faulted["verdict"] is None


@pytest.mark.slow
def test_without_a_target_the_server_is_embedded(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    source = write([{"response": "so \\boxed{1/2}", "reference": "0.5"}])
    done = assay("score", source, "-o", out, "--task", "math")
    assert done.returncode == 0, done.stderr
    assert read(out)[0]["reward"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_work_goes_on(kill: int, write: Callable[..., Path], tmp_path: Path) -> None:
    source, out = write(rows(6000)), tmp_path / "out.jsonl"
    partial = tmp_path / "out.jsonl.partial"
    with FakeRewardServer(knobs=Knobs(delay_s=0.3)) as slow:
        arguments = ["score", str(source), "-o", str(out), "--verifier", "exact"]
        program = "from assay.cli.__main__ import main; main()"
        command = [sys.executable, "-c", program, *arguments, "--target", slow.address]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
            while not (partial.exists() and partial.stat().st_size) and run.poll() is None:
                time.sleep(0.005)
            os.kill(run.pid, kill)
            _, said = run.communicate()
        if run.returncode == 0:
            pytest.skip("the run was done before it could be interrupted")
        assert not out.exists()
        if kill == signal.SIGINT:
            assert run.returncode == 130
            assert "run the same command again" in said
            assert "Traceback" not in said
        again = assay(*arguments, "--target", slow.address)
    assert again.returncode == 0, again.stderr
    assert "going on: " in again.stderr
    assert read(out) == [
        {**row, "reward": float(n % 2), "verdict": ("incorrect", "correct")[n % 2],
         "answer": str(n % 2), "components": [], "explanation": ("not equal", "equal")[n % 2],
         "suspicions": [], "appeal": None, "fault": None}
        for n, row in enumerate(rows(6000))
    ]  # fmt: skip
    assert not partial.exists()


def test_a_torn_line_is_scored_again_and_another_input_starts_anew(
    server: FakeRewardServer, write: Callable[..., Path], tmp_path: Path
) -> None:
    out, partial = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    with FakeRewardServer(knobs=Knobs(internal=1)) as broken:
        arguments = ("score", write(rows(3)), "-o", out, "--verifier", "exact", "--target")
        failed = assay(*arguments, broken.address)
    assert failed.returncode == 1
    assert not partial.exists()
    assert failed.stderr.count("\n") == 1
    partial.write_text(
        '{"id": "r0", "reward": 9.0, "verdict": "x", "fault": null}\n{"id": "r1", "rew'
    )
    done = assay(*arguments, server.address)
    assert "starting anew" in done.stderr
    assert read(out)[0]["reward"] == 0.0


def repeated(problems: int, each: int) -> Rows:
    """Problem p has p of `each` responses right; the wrong ones agree with one another."""
    return [
        {"prompt": f"p{p}", "response": "1" if n < p else "0", "reference": "1", "task": "exact"}
        for p in range(problems)
        for n in range(each)
    ]


def test_the_table_counts_by_task_and_by_prompt(
    server: FakeRewardServer, write: Callable[..., Path], tmp_path: Path
) -> None:
    out, numbers = tmp_path / "out.jsonl", tmp_path / "numbers.json"
    source = write([*repeated(5, 4), *rows(2)])
    common = ("-o", out, "--verifier", "exact", "--target", server.address, "--json", numbers)
    done = assay("score", source, *common)
    assert done.returncode == 0, done.stderr
    said = json.loads(numbers.read_text())
    by_task = {task["task"]: task for task in said["tasks"]}
    assert said["rows"] == 22
    assert by_task["exact"]["rows"] == 22
    found = by_task["exact"]["problems"]
    assert (found["count"], found["responses"]) == (5, [4, 4])
    # Of 4 responses 0, 1, 2, 3 and 4 are right, by hand: 1 - C(4 - c, k) / C(4, k).
    assert found["pass_at"]["1"]["value"] == pytest.approx(0.5)
    assert found["pass_at"]["1"]["problems"] == 5
    assert 0.2 < found["pass_at"]["1"]["low"] < 0.5 < found["pass_at"]["1"]["high"] < 0.8
    assert found["pass_at"]["2"]["value"] == pytest.approx((0 + 1 / 2 + 5 / 6 + 1 + 1) / 5)
    assert found["pass_at"]["4"]["value"] == pytest.approx(4 / 5)
    assert found["maj"]["value"] == pytest.approx((0 + 0 + 1 / 2 + 1 + 1) / 5)
    text = " ".join(done.stderr.split())
    assert "pass@4" in text
    assert "maj@k" in text
    assert assay("score", source, *common[:-1], tmp_path / "no" / "n.json").returncode == 1
    assert assay("score", source, *common[:-1], out).returncode == 1


@pytest.mark.slow
def test_wrong_rows_are_faults_with_keep_going(
    server: FakeRewardServer, write: Callable[..., Path], tmp_path: Path
) -> None:
    source, out = write(rows(1)), tmp_path / "out.jsonl"
    numbers = tmp_path / "numbers.json"
    bad = [
        '{"id": "r0", "response": "1", "reference": "1"}',
        '{"response": "1", "reference": 1, "id": "a"}',
        '{"response": "1", "reference": "1", "params": [1]}',
        '{"reference": "1", "mine": 1}',
        "{",
        "[]",
    ]
    with source.open("ab") as file:
        file.write("\n".join([*bad, '{"response": "1", "reference": "1"}\n']).encode())
        file.write(b"\xff\n")
    options = ("-o", out, "--verifier", "exact", "--target", server.address)
    strict = assay("score", source, *options)
    assert (strict.returncode, out.exists()) == (1, False)
    done = assay("score", source, *options, "--keep-going", "--json", numbers)
    assert done.returncode == 0, done.stderr
    scored = read(out)
    assert [row["fault"] and row["fault"]["reason"] for row in scored] == [
        None,
        "DUPLICATE_ITEM_ID",
        "UNUSABLE_REFERENCE",
        "INVALID_PARAMETER",
        "MISSING_RESPONSE",
        "MALFORMED_ROW",
        "MALFORMED_ROW",
        None,
        "MALFORMED_ROW",
    ]
    assert [row["reward"] for row in scored] == [0.0, *[None] * 6, 1.0, None]
    assert scored[4]["mine"] == 1
    assert "in.jsonl:6: not valid JSON" in scored[5]["fault"]["message"]
    said = json.loads(numbers.read_text())
    assert (said["rows"], said["judged"], said["mean_reward"]) == (9, 2, 0.5)
    assert said["faults"]["MALFORMED_ROW"] == 3
    failing = ("--keep-going", "--fail-on-fault")
    assert assay("score", source, *options, *failing).returncode == 1
    unknown = ("-o", out, "--verifier", "exect", "--target", server.address, "--keep-going")
    assert "did you mean 'exact'?" in assay("score", source, *unknown).stderr


def test_columns_of_another_verifier_are_kept_and_said(
    server: FakeRewardServer, write: Callable[..., Path], tmp_path: Path
) -> None:
    source, numbers = write(rows(2)), tmp_path / "numbers.json"
    common = ("--verifier", "exact", "--target", server.address)
    for _ in range(3):
        done = assay("score", source, "-o", tmp_path / "out", *common, "--json", numbers)
        assert done.returncode == 0, done.stderr
        source = (tmp_path / "out").rename(tmp_path / "next.jsonl")
    last = read(source)[1]
    assert [last[key] for key in ("reward", "input_reward", "input_input_reward")] == [1.0] * 3
    assert "input column reward" in done.stderr
    assert "kept as input_input_reward" in done.stderr
    kept = json.loads(numbers.read_text())["kept_columns"]
    assert {"column": "verdict", "kept_as": "input_input_verdict"} in kept


Refused = Callable[[tuple[str, ...], str], None]


@pytest.fixture
def check_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refused:
    """Runs `assay score` in a fresh folder and checks that it refuses, in one line, and why."""
    monkeypatch.chdir(tmp_path)

    def check(arguments: tuple[str, ...], says: str) -> None:
        assert run(["score", *arguments]) == 1
        said = capsys.readouterr()
        assert says in said.err
        assert said.err.startswith("assay: error: ")
        assert said.err.count("\n") == 1
        assert said.out == ""
        assert not list(tmp_path.glob("out*"))

    return check


FORMS = [".jsonl.gz", ".jsonl.zst", ".parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_rows_come_and_go_in_other_forms(
    form: str, server: FakeRewardServer, write: Callable[..., Path], tmp_path: Path
) -> None:
    common = ("--verifier", "exact", "--target", server.address)
    mixed = [{**row, "extra": n % 2 or "odd"} for n, row in enumerate(rows(5))]
    plain, packed, again = (tmp_path / name for name in ("a.jsonl", f"b{form}", "c.jsonl"))
    source = write(mixed)
    assert assay("score", source, "-o", plain, *common).returncode == 0
    done = assay("score", source, "-o", packed, *common)
    assert done.returncode == 0, done.stderr
    assert ("written as texts of JSON: extra" in done.stderr) == (form == ".parquet")
    assert assay("score", packed, "-o", again, *common).returncode == 0
    back, straight = read(again), read(plain)
    for row in back:
        if form == ".parquet":
            row["extra"] = json.loads(row["extra"])
        for key in OUTPUT_KEYS[:-1]:
            assert row.pop(f"input_{key}") == row[key]
        assert row.pop("input_fault") is None
    assert back == straight
    assert not list(tmp_path.glob("*.pack*")) + list(tmp_path.glob("*.partial*"))


def test_an_interrupted_run_with_another_form_goes_on(
    server: FakeRewardServer, write: Callable[..., Path], tmp_path: Path
) -> None:
    out, partial = tmp_path / "out.jsonl.gz", tmp_path / "out.jsonl.gz.partial"
    source = write(rows(1000))
    with FakeRewardServer(knobs=Knobs(delay_s=0.3)) as slow:
        program = "from assay.cli.__main__ import main; main()"
        arguments = ["score", str(source), "-o", str(out), "--verifier", "exact", "--target"]
        command = [sys.executable, "-c", program, *arguments, slow.address]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as begun:
            while not (partial.exists() and partial.stat().st_size) and begun.poll() is None:
                time.sleep(0.005)
            begun.kill()
    if begun.returncode == 0:
        pytest.skip("the run was done before it could be interrupted")
    assert "going on: " in assay(*arguments, server.address).stderr
    lines = gzip.decompress(out.read_bytes()).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"r{n}" for n in range(1000)]
    assert not partial.exists()


@pytest.mark.parametrize("form", FORMS[1:])
def test_a_form_whose_library_is_absent_is_refused_before_scoring(
    form: str,
    server: FakeRewardServer,
    check_refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("in.jsonl").write_text('{"response": "1", "reference": "1"}\n')
    Path(f"in{form}").write_text("?")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    common = ("--verifier", "exact", "--target", server.address)
    before = len(server.requests)
    for arguments in ((f"in{form}", "-o", "out"), ("in.jsonl", "-o", f"out{form}")):
        check_refused((*arguments, *common), "needs the package pyarrow, which is not installed")
    assert len(server.requests) == before


@pytest.mark.slow
def test_a_resumed_run_counts_as_an_uninterrupted_one(
    server: FakeRewardServer, write: Callable[..., Path], tmp_path: Path
) -> None:
    source = write([*repeated(200, 4), {"reference": "1"}, *repeated(90, 4)])
    partial = tmp_path / "out.jsonl.partial"

    def arguments(name: str, address: str) -> list[str]:
        where = ["-o", str(tmp_path / f"{name}.jsonl"), "--json", str(tmp_path / f"{name}.json")]
        return ["score", str(source), *where, "--keep-going", "--target", address]

    with FakeRewardServer(knobs=Knobs(delay_s=0.3)) as slow:
        program = "from assay.cli.__main__ import main; main()"
        command = [sys.executable, "-c", program, *arguments("out", slow.address)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as begun:
            while not (partial.exists() and partial.stat().st_size) and begun.poll() is None:
                time.sleep(0.005)
            begun.kill()
    if begun.returncode == 0:
        pytest.skip("the run was done before it could be interrupted")
    again = assay(*arguments("out", server.address))
    assert "going on: " in again.stderr
    assert assay(*arguments("whole", server.address)).returncode == 0
    for kind in ("json", "jsonl"):
        out, whole = (tmp_path / f"{name}.{kind}" for name in ("out", "whole"))
        assert out.read_text() == whole.read_text()
    assert len(read(tmp_path / "out.jsonl")) == 1161


BAD_ROWS = {
    "not json": ("{", "in.jsonl:1: not valid JSON"),
    "nan": ('{"response": NaN}', "in.jsonl:1: not usable JSON"),
    "deep": ("[" * 100_000, "in.jsonl:1: not"),
    "not an object": ("[]", "in.jsonl:1: the line is an empty list"),
    "no response": ('{"reference": "1"}', "in.jsonl:1: the row has no 'response'"),
    "response number": ('{"response": 1, "reference": "1"}', "in.jsonl:1: 'response' is a number"),
    "tests number": ('{"response": "1", "tests": 1}', "in.jsonl:1: 'tests': tests are written as"),
    "two kinds": (
        '{"response": "1", "reference": "1", "tests": ["assert f()"]}',
        "in.jsonl:1: the row has 'reference' and 'tests'",
    ),
    "reference number": ('{"response": "1", "reference": 1}', "'reference' is a number"),
    "no reference": ('{"response": "1"}', "in.jsonl:1: the row has no 'reference'"),
    "bad id": ('{"id": [], "response": "1"}', "in.jsonl:1: 'id' is an empty list"),
    "long id": ('{"id": "' + "x" * 300 + '", "response": "1"}', "in.jsonl:1: 'id' is longer"),
    "bad prompt": ('{"response": "1", "reference": "1", "prompt": 1}', "'prompt' is a number"),
    "bad params": ('{"response": "1", "reference": "1", "params": [1]}', "'params' is a list"),
    "bad verifier": ('{"response": "1", "verifier": 1}', "in.jsonl:1: 'verifier' is a number"),
    "unknown verifier": ('{"response": "1", "reference": "1", "verifier": "no"}', "the name 'no'"),
    "nothing": ("", "holds no rows"),
    "blank": ("\n\n", "holds no rows"),
    "second line": ('{"response": "1", "reference": "1"}\n{"a', "in.jsonl:2: not valid JSON"),
    "twice": (
        '{"id": "a", "response": "1", "reference": "1"}\n\n{"id": "a", "response": "1"}',
        "in.jsonl:3: the id 'a' stands on line 1 too",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_refused_before_anything_is_scored(
    case: str, server: FakeRewardServer, check_refused: Refused
) -> None:
    text, says = BAD_ROWS[case]
    Path("in.jsonl").write_text(text)
    before = len(server.requests)
    arguments = ("in.jsonl", "-o", "out.jsonl", "--verifier", "exact", "--target", server.address)
    check_refused(arguments, says)
    assert len(server.requests) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("absent.jsonl", "-o", "out"), "absent.jsonl is not there"),
        ((".", "-o", "out"), "cannot be read"),
        (("latin.jsonl", "-o", "out"), "latin.jsonl:1: the line is not UTF-8"),
        (("torn.jsonl.gz", "-o", "out"), "not a whole gzip file"),
        (("plain.jsonl.gz", "-o", "out"), "not a whole gzip file"),
        (("torn.jsonl.zst", "-o", "out"), "not a whole zstd file"),
        (("good.jsonl.parquet", "-o", "out"), "not a whole Parquet file"),
        (("absent.parquet", "-o", "out"), "is not there"),
        (("good.jsonl", "-o", "good.jsonl"), "would replace the input"),
        (("good.jsonl", "-o", "absent/out"), "the folder of the output"),
        (("good.jsonl", "-o", "folder"), "is a folder"),
        (("good.jsonl", "-o", "out", "--target", "nowhere"), "not HOST:PORT"),
        (("good.jsonl", "-o", "out", "--target", "127.0.0.1:1"), "no reward server answers"),
        (("good.jsonl", "-o", "out", "--token-file", "absent"), "absent: No such file"),
        (("good.jsonl", "-o", "out", "--token-file", "empty"), "holds no token"),
        (("good.jsonl", "-o", "out", "--tls-ca", "absent"), "absent"),
        (("good.jsonl", "-o", "out", "--timeout", "0"), "not positive"),
        (("bare.jsonl", "-o", "out"), "neither verifier nor task"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: tuple[str, ...], says: str, server: FakeRewardServer, check_refused: Refused
) -> None:
    good = '{"response": "1", "reference": "1", "verifier": "exact"}\n'
    Path("good.jsonl").write_text(good)
    Path("bare.jsonl").write_text('{"response": "1", "reference": "1"}\n')
    Path("latin.jsonl").write_bytes(good.replace('"1"', '"é"').encode("latin-1"))
    Path("torn.jsonl.gz").write_bytes(gzip.compress(good.encode() * 99)[:-12])
    Path("plain.jsonl.gz").write_text(good)
    Path("torn.jsonl.zst").write_text(good)
    Path("good.jsonl.parquet").write_text(good)
    Path("empty").write_text("\n")
    Path("folder").mkdir()
    target = () if "--target" in arguments else ("--target", server.address)
    check_refused((*arguments, *target), says)
    assert Path("good.jsonl").read_text() == good
