"""The contract: generated code is fresh, buf is content, and the checks themselves can fail."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from types import ModuleType

import grpc
import pytest

from assay.api.reward.v1 import reward_pb2
from assay.kit.reasons import Reason


@pytest.fixture(scope="module")
def protos(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "protos_script", repository / "scripts" / "protos.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def edited(protos: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reward.proto of a copy of protos/ that the script now works on."""
    copy = tmp_path / "protos"
    shutil.copytree(protos.PROTOS, copy)
    monkeypatch.setattr(protos, "PROTOS", copy)
    return copy / "assay" / "api" / "reward" / "v1" / "reward.proto"


def test_the_committed_contract_is_clean(protos: ModuleType) -> None:
    assert protos.check() == 0


def test_drift_is_found(protos: ModuleType, edited: Path) -> None:
    edited.write_text(
        edited.read_text().replace(
            "string task = 3;", "string task = 3;\n\n  // New.\n  string added = 99;"
        )
    )
    assert any(name.startswith("assay/api/reward/v1/reward_pb2") for name in protos.drift())
    (edited.parent / "gone_pb2.py").write_text("")
    assert "assay/api/reward/v1/gone_pb2.py" in protos.drift()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("string task = 3;", "string task = 33;"),
        (
            "some item would be judged otherwise.\n  string version = 2;",
            "some item would be judged otherwise.\n\n  string version = 2;",
        ),
    ],
    ids=["a field that moves", "a field without a comment"],
)
def test_a_bad_contract_is_refused(protos: ModuleType, edited: Path, old: str, new: str) -> None:
    text = edited.read_text()
    assert old in text
    edited.write_text(text.replace(old, new))
    protos.generate(protos.PROTOS)  # so that drift is not what fails
    assert protos.drift() == []
    assert protos.check() == 1


def test_every_reason_that_the_contract_names_is_in_the_lexicon(repository: Path) -> None:
    text = "".join(path.read_text() for path in (repository / "protos").rglob("*.proto"))
    comments = " ".join(re.findall(r"//(.*)", text))
    words = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", comments))
    codes = {code.name for code in grpc.StatusCode}
    values = set(re.findall(r"^\s*([A-Z][A-Z_]+) = \d+;", text, re.MULTILINE))
    assert words - codes - values - set(Reason) == set()
    assert {"ORDER_GAP", "QUEUE_FULL"} <= words


def test_an_outcome_is_a_judgement_or_a_fault_never_both() -> None:
    result = reward_pb2.Result(id="1", judgement=reward_pb2.Judgement(reward=1.0))
    result.fault.message = "no"
    assert result.WhichOneof("outcome") == "fault"
    assert not result.HasField("judgement")
    assert {
        field.name for field in reward_pb2.Result.DESCRIPTOR.oneofs_by_name["outcome"].fields
    } == {"judgement", "fault"}
