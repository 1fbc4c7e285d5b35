"""Functions in files: as a server takes, serves and refuses them, and as `assay score` does."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cli.main import run
from assay.clients.reward import RewardClient
from assay.clients.services import EmbeddedServices
from assay.clients.types import Item
from assay.kit.errors import ConfigError, StartupError
from assay.reward_server.files import FileError, load, read_source, read_verifiers
from waiting_support import until

REWARDS = '''
import os
import time
from dataclasses import dataclass
from functools import cache

import words_of_a_test
from assay.reward_server import Component, Judgement, VerifierItem, verifier

print("assay reward_server ready on 192.0.2.1:1")


def capitals(response, reference) -> bool:
    """The response is the reference in capitals."""
    if response == "hang":
        while True:
            pass
    if response == "raise":
        raise KeyError(response)
    if response == "die":
        os._exit(3)
    return response == words_of_a_test.loud(reference)


def score(completions, answer, **columns):
    return [1.0 if one == answer[0] else None for one in completions]


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(solution_str), "acc": data_source == "gsm8k"}


@cache
def connection():
    return os.getpid()


def same_process(response):
    return float(connection() == os.getpid())


@verifier("quiet", examples=[
    {"response": "paris", "reference": "Paris", "verdict": "correct"},
    {"response": "Paris", "reference": "Paris", "verdict": "incorrect"},
])
def quiet(item: VerifierItem) -> Judgement:
    """The response is in small letters."""
    right = item.response() == item.answers()[0].lower()
    return Judgement.composed("correct" if right else "incorrect", (Component("e", float(right)),))


@verifier("unproven", examples=[{"response": "a", "reference": "b", "verdict": "correct"}])
def unproven(item: VerifierItem) -> Judgement:
    """Fails its own example."""
    return Judgement.composed("incorrect", (Component("e", 0.0),))
'''
FUNCTIONS = ("capitals", "score", "compute_score", "same_process", "quiet", "unproven")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "words_of_a_test.py").write_text("def loud(text):\n    return text.upper()\n")
    path = folder / "my_rewards.py"
    path.write_text(REWARDS)
    return path


@pytest.fixture(scope="module")
def client(file: Path) -> Iterator[RewardClient]:
    flags = [f"--verifier={file}:{name}" for name in FUNCTIONS]
    flags += [f"--verifier=shout={file}:capitals", "--workers=2"]
    with (
        EmbeddedServices(["reward"], arguments={"reward": flags}) as services,
        RewardClient(services.address, timeout_s=60.0) as client,
    ):
        yield client


def test_each_shape_judges(client: RewardClient) -> None:
    items = [
        Item("PARIS", "Paris", verifier="capitals"),
        Item("PARIS", "Paris", verifier="shout"),
        Item("PARIS", "Paris", task="capitals"),
        Item("Paris", ["Rome", "Paris"], verifier="score"),
        Item("Paris", {"answer": "Paris"}, verifier="score"),
        Item("0.5", "x", verifier="compute_score", parameters={"data_source": "gsm8k"}),
        Item("x", None, verifier="same_process"),
        Item("paris", "Paris", verifier="quiet"),
    ]
    results = client.score(items, on_error="raise")
    outcomes = [one.judgement or one.fault for one in results]
    assert outcomes[3] is not None
    assert getattr(outcomes[3], "reason", "") == "UNSUPPORTED_INPUT"  # TRL's None
    rewards = [one.judgement.reward for one in results if one.judgement is not None]
    assert rewards == [1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0], outcomes


def test_a_function_is_isolated(client: RewardClient) -> None:
    said = ["hang", "raise", "die", "PARIS"]
    items = [Item(text, "Paris", verifier="capitals", timeout_s=1.0) for text in said]
    *faults, last = client.score(items, on_error="raise")
    assert [one.fault.reason for one in faults if one.fault is not None] == [
        "ITEM_TIMEOUT",
        "VERIFIER_FAILED",
        "WORKER_DIED",
    ]
    assert "raised KeyError at my_rewards.py:19" in str(faults[1].fault)
    assert last.judgement is not None
    assert last.judgement.reward == 1.0


def test_one_that_fails_its_own_examples_is_not_served(client: RewardClient) -> None:
    [result] = client.score([Item("a", "b", verifier="unproven")], on_error="raise")
    assert result.fault is not None
    assert result.fault.reason == "VERIFIER_UNHEALTHY"


def test_the_listing_has_names_and_versions(client: RewardClient, file: Path) -> None:
    listed = {one.name: one for one in client.list_verifiers().verifiers}
    assert {*FUNCTIONS, "shout"} <= listed.keys()
    assert listed["capitals"].description == "The response is the reference in capitals."
    assert listed["capitals"].version == listed["shout"].version
    assert listed["quiet"].version.startswith("1+")
    [again] = read_verifiers([f"{file}:capitals"])
    assert again.spec.version == listed["capitals"].version


def test_the_version_changes_with_the_text_and_with_that_of_modules_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    helper, path = tmp_path / "helper_of_a_test.py", tmp_path / "mine.py"
    helper.write_text("N = 1\n")
    path.write_text("import helper_of_a_test\ndef fn(response):\n    return 1.0\n")
    versions = []
    for file, more in ((path, ""), (helper, "# a\n"), (path, "# b\n")):
        file.write_text(file.read_text() + more)
        [made] = read_verifiers([f"{path}:fn"])
        versions.append(made.spec.version)
    assert len(set(versions)) == 3
    assert load(made.source).spec == made.spec
    with pytest.raises(FileError, match="has changed since the server started"):
        load(replace(made.source, version=versions[0]))
    helper.write_text("N = 2\n")
    with pytest.raises(FileError, match="has changed since the server started"):
        load(made.source)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("while True:\n    pass\n", "takes more than 3 s"),
        (
            "import time\ntry:\n    time.sleep(60)\nfinally:\n    time.sleep(60)\n",
            "takes more than",
        ),
        ("x = 1\nraise ValueError('no\\nway')\n", "raises ValueError at line 2: no way"),
        ("x = 1\nexit(0)\n", "ends the interpreter at line 2"),
        ("import os\nos._exit(0)\n", "ends the interpreter"),
        ("import os\nos.kill(os.getpid(), 9)\n", "ends the interpreter"),
        ("import no_such_module_of_a_test\n", "raises ModuleNotFoundError at line 1"),
        ("def fn(:\n", "not Python, line 1"),
        ("def other(response):\n    return 1.0\n", "no function 'fn'; it has: other"),
        ("fn = 3\n", "'fn' is a int, not a function"),
        ("def fn(a, b):\n    return 1.0\n", "(response, reference)"),
        (b"def fn(response):\n    return '\xff\xfe'\n", "not Python"),
        (b"def fn(response):\0\n    return 1.0\n", "not Python"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(
    text: str | bytes, says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    began_s = time.monotonic()
    with pytest.raises(ConfigError) as error:
        read_verifiers([f"{path}:fn"], limit_s=3.0)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert time.monotonic() - began_s < 30
    assert capfd.readouterr() == ("", "")


def test_what_names_no_file_is_one_line(tmp_path: Path) -> None:
    for text, says in (
        ("my_rewards.py", "write FILE.py:FUNCTION"),
        (f"{tmp_path}:fn", "is a folder"),
        (f"{tmp_path}/absent.py:fn", "is not there"),
        (f"{tmp_path}/a.py:", "write FILE.py:FUNCTION"),
    ):
        with pytest.raises(ConfigError, match=says):
            read_source(text)


def test_a_taken_name_stops_the_start_and_says_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("print('assay reward_server ready on 1.2.3.4:1')\ndef exact(response): ...\n")
    flags = {"reward": [f"--verifier={path}:exact"]}
    with (
        pytest.raises(StartupError, match=r"the name 'exact' is taken; choose another: NAME="),
        EmbeddedServices(["reward"], arguments=flags),
    ):
        pytest.fail("it started")


@pytest.mark.slow
def test_score_takes_a_function_of_a_file(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    given = [{"response": "PARIS", "reference": "Paris"}, {"response": "x", "reference": "x"}]
    rows.write_text("".join(json.dumps(row) + "\n" for row in given))
    monkeypatch.chdir(file.parent)
    arguments = ["score", str(rows), "-o", str(out), "--verifier"]
    assert run([*arguments, "my_rewards.py:capitals"]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["reward"] for line in lines] == [1.0, 0.0]
    assert [line["verdict"] for line in lines] == ["correct", "incorrect"]
    assert run([*arguments, "mine=my_rewards.py:quiet", "-o", str(tmp_path / "b.jsonl")]) == 0
    capsys.readouterr()
    assert run([*arguments, "my_rewards.py:absent"]) != 0
    assert "it has no function 'absent'; it has: capitals" in capsys.readouterr().err
    assert run([*arguments, "my_rewards.py"]) != 0
    assert "write FILE.py:FUNCTION" in capsys.readouterr().err
    assert run([*arguments, "my_rewards.py:capitals", "--target", "127.0.0.1:1"]) != 0
    assert "leave --target out" in capsys.readouterr().err


@pytest.mark.slow
def test_functions_of_files_are_compared_validated_and_checked(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    given = [{"response": "PARIS", "reference": "Paris"}, {"response": "x", "reference": "x"}]
    rows.write_text("".join(json.dumps(row) + "\n" for row in given))
    monkeypatch.chdir(file.parent)
    compare = ["score", str(rows), "-o", str(out), "--compare", "my_rewards.py:capitals"]
    assert run([*compare, "exact:case_sensitive=false"]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["response"] for line in lines] == ["x"]
    assert [lines[0][key]["accepts"] for key in ("judgement_a", "judgement_b")] == [False, True]
    assert lines[0]["judgement_a"]["verifier"] == "my_rewards.py:capitals"
    other = tmp_path / "other.py"
    other.write_text(file.read_text().replace("== words_of_a_test.loud", "!= words_of_a_test.loud"))
    assert run([*compare, f"{other}:capitals"]) != 0
    assert f"two verifiers are called capitals; write NAME={other}" in capsys.readouterr().err
    assert run([*compare, "exact", "--target", "127.0.0.1:1"]) != 0
    assert "leave --target out" in capsys.readouterr().err

    loud = tmp_path / "loud.jsonl"
    loud.write_text(json.dumps({"reference": "PARIS"}) + "\n")
    assert (
        run(["validate", str(loud), "--verifier", "my_rewards.py:capitals", "--as", "plain"]) == 0
    )
    assert (
        run(["validate", str(rows), "--verifier", "my_rewards.py:capitals", "--as", "plain"]) == 1
    )
    capsys.readouterr()

    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({**given[0], "verdict": "correct"}) + "\n")
    check = ["check-verifier", "my_rewards.py:capitals", "--cases", str(cases)]
    run([*check, "--item-timeout", "2", "--hostile-chars", "4096"])
    said = capsys.readouterr().out
    assert said.startswith("capitals ")
    assert "case 1" in said or "cases" in said


@pytest.mark.slow
async def test_a_changed_file_is_taken_with_reload_and_a_broken_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"

    def write(text: str) -> None:
        part = tmp_path / "mine.part"
        part.write_text(text)
        part.rename(file)

    def judged(client: RewardClient) -> float | None:
        (result,) = client.score([Item("abc", verifier="fn")])
        return result.reward

    write("def fn(response):\n    return 1.0\n")
    flags = {"reward": ["--verifier", f"{file}:fn", "--reload"]}
    with (
        EmbeddedServices(["reward"], arguments=flags, log_dir=tmp_path) as services,
        RewardClient(services.address) as client,
    ):
        pid = services.pid()
        assert judged(client) == 1.0
        write("def fn(response:\n")
        log = tmp_path / "reward.err"
        await until(lambda: "the verifiers from before stay in force" in log.read_text())
        assert judged(client) == 1.0
        write("def fn(response):\n    return 2.0\n")
        await until(lambda: judged(client) == 2.0)
        write("def fn(response):\n    return 3.0\n")
        await until(lambda: judged(client) == 3.0)
        assert services.pid() == pid
        [info] = [one for one in client.list_verifiers().verifiers if one.name == "fn"]
        assert f"read again: fn {info.version}; the server starts anew" in log.read_text()
        assert log.read_text().count("serving on") == 3
