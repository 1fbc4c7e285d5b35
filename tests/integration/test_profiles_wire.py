"""Profiles on a running server: listed, judged stage by stage over real workers, faults kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.kit.errors import error_info

MINE = """
[[profile]]
name = "mine"
description = "A profile of the operator."
tasks = ["mine"]
[[profile.gate]]
name = "form"
verifier = "format"
pass = "well-formed"
reward = -1.0
[[profile.component]]
name = "answer"
verifier = "math"
weight = 2.0
[[profile.component]]
name = "brevity"
verifier = "length"
parameters = { shape = "linear", unit = "words", max_length = 10 }
when = { component = "answer", is = "correct" }
clip = [0.0, 1.0]
[profile.parameters]
structure = { sets = "form.structure", default = "boxed" }
"""


def command(*flags: str) -> list[str]:
    start = [sys.executable, "-m", "assay.reward_server", "--port", "0", "--workers", "1"]
    return [*start, *flags]


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[reward_pb2_grpc.RewardServiceStub]:
    file = tmp_path_factory.mktemp("profiles") / "mine.toml"
    file.write_text(MINE)
    with subprocess.Popen(
        command("--profiles", str(file)), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert " ready on " in line
            with grpc.insecure_channel(line.split()[-1]) as channel:
                yield reward_pb2_grpc.RewardServiceStub(channel)
        finally:
            process.kill()


def item(name: str, response: str, verifier: str = "mine", **more: object) -> reward_pb2.Item:
    reference = reward_pb2.Reference(text="12")
    made = reward_pb2.Item(id=name, verifier=verifier, response=response, reference=reference)
    made.MergeFrom(reward_pb2.Item(**more))  # type: ignore[arg-type]
    return made


def score(
    stub: reward_pb2_grpc.RewardServiceStub, *items: reward_pb2.Item
) -> list[reward_pb2.Result]:
    response = stub.BatchScore(reward_pb2.BatchScoreRequest(items=items), timeout=60)
    return list(response.results)


def test_profiles_are_listed(stub: reward_pb2_grpc.RewardServiceStub) -> None:
    listed = stub.ListVerifiers(reward_pb2.ListVerifiersRequest(), timeout=10).verifiers
    profiles = {info.name: info for info in listed if info.is_profile}
    assert {"mine", "rtv-genrm", "math-format", "code-format"} <= set(profiles)
    mine = profiles["mine"]
    assert (mine.min_reward, mine.max_reward) == (-2.0, 5.0)  # math may give -1 to 2
    assert [parameter.name for parameter in mine.parameters] == ["structure"]
    assert list(mine.tasks) == ["mine"]


def test_a_batch_of_one_profile_is_judged_stage_by_stage(
    stub: reward_pb2_grpc.RewardServiceStub,
) -> None:
    results = score(
        stub,
        item("right", r"So \boxed{12}"),
        item("wrong", r"So \boxed{13}"),
        item("formless", "It is 12."),
        item("by-task", r"\boxed{12}", verifier="", task="mine"),
    )
    rewards = [result.judgement.reward for result in results]
    assert rewards == [2.8, 0.0, -1.0, 2.9]
    verdicts = [result.judgement.verdict for result in results]
    assert verdicts == ["correct", "incorrect", "gated", "correct"]
    parts = {part.name: part.score for part in results[0].judgement.components}
    assert parts == {"form": 1.0, "answer": 1.0, "brevity": 0.8, "brevity-raw": 0.8}
    assert results[0].judgement.verifier.name == "mine"
    assert results[0].judgement.extracted_answer == "12"


def test_parameters_reach_the_parts(stub: reward_pb2_grpc.RewardServiceStub) -> None:
    think = reward_pb2.Item()
    think.parameters["structure"].string_value = "think"
    bad = reward_pb2.Item()
    bad.parameters["structure"].string_value = "no-such"
    [first, second] = score(
        stub,
        item("think", r"<think>x</think>\boxed{12}", parameters=think.parameters),
        item("bad", "", parameters=bad.parameters),
    )
    assert first.judgement.verdict == "correct"
    info = error_info(second.fault)
    assert info is not None
    assert info.reason == "INVALID_PARAMETER"


def test_what_is_not_served_is_a_fault_of_its_own_item(
    stub: reward_pb2_grpc.RewardServiceStub,
) -> None:
    anchor = reward_pb2.Reference(anchor_response="a better essay")
    tests = reward_pb2.Reference()
    tests.tests.tests.add()
    results = score(
        stub,
        item("math", r"\boxed{12}", "rtv-genrm", task="math"),
        item("truth", "an essay", "rtv-genrm"),
        reward_pb2.Item(id="anchor", verifier="rtv-genrm", response="x", reference=anchor),
        reward_pb2.Item(id="tests", verifier="rtv-genrm", response="x", reference=tests),
        reward_pb2.Item(id="nothing", verifier="rtv-genrm", response="x"),
    )
    assert results[0].judgement.reward == 1.0
    infos = [error_info(result.fault) for result in results[1:]]
    reasons = [info.reason for info in infos if info]
    assert reasons == ["UNKNOWN_VERIFIER"] * 3 + ["MISSING_REFERENCE"]
    components = [info.metadata["component"] for info in infos[:3] if info]
    assert components == ["genrm-ground-truth", "genrm-anchor", "rtv-tests"]


def test_a_wrong_file_stops_the_server_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(MINE.replace("weight", "wieght"))
    found = subprocess.run(
        command("--profiles", str(file)), capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode != 0
    assert "did you mean 'weight'?" in found.stderr
    assert "Traceback" not in found.stderr
