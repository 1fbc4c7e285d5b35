"""`assay score` and `assay validate` on a data set as `datasets` loads it: here, a local folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.cli.main import run
from assay.cli.scoring.hub import HubRows, read_address
from assay.clients.testing import FakeRewardServer
from assay.kit.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "set"
    made.mkdir()
    for split, answers in (("train", "ab"), ("test", "cd")):
        rows = [{"response": said, "reference": "c", "level": 1} for said in answers]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (made / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return made


def test_a_split_is_scored(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeRewardServer() as server:
        known = ["-o", str(tmp_path / "out.jsonl"), "--verifier", "exact", "--target"]
        known.append(server.address)
        assert run(["score", f"hf://datasets/{folder}?split=test", *known]) == 0
        lines = [json.loads(one) for one in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [(line["response"], line["reward"]) for line in lines] == [("c", 1.0), ("d", 0.0)]
        assert lines[0]["level"] == 1
        capsys.readouterr()
        assert run(["score", f"hf://datasets/{folder}", *known]) == 1
        assert "has the splits test, train; name one of them" in capsys.readouterr().err
        assert run(["score", f"hf://datasets/{folder}?split=dev", *known]) == 1
        assert "split 'dev', cannot be loaded" in capsys.readouterr().err
        checked = ["validate", f"hf://datasets/{folder}?split=train", "--verifier", "exact"]
        assert run([*checked, "--target", server.address]) == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("openai/gsm8k", HubRows("openai/gsm8k")),
        ("a/b@v1?split=test", HubRows("a/b", "v1", split="test")),
        ("a/b?subset=main&split=test", HubRows("a/b", subset="main", split="test")),
    ],
)
def test_an_address_names_a_data_set(text: str, found: HubRows) -> None:
    assert read_address(f"hf://datasets/{text}") == found


@pytest.mark.parametrize(
    "text", ["", "?split=test", "a/b?part=x", "a/b?split=", "a?split=x&split=y"]
)
def test_another_address_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"write hf://datasets/NAME\[@REVISION\]"):
        read_address(f"hf://datasets/{text}")
