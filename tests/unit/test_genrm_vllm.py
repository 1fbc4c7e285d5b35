"""What vLLM is started with; the engine itself is tested in tests/vllm_cpu."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from assay.genrm.engines.base import EngineError
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.loading import Opened
from assay.genrm.engines.vllm import arguments, finite, make
from assay.kit.errors import ConfigError, StartupError


def opened(head: Any = "generative") -> Opened:
    nothing: Any = None
    return Opened("/models/m", head, nothing, nothing, nothing, 512, "abc")


def settings(*, cpu: bool = True, head: str = "generative", **changes: Any) -> dict[str, Any]:
    config = EngineConfig(path="/models/m", engine="vllm", **changes)
    return arguments("judge", config, opened(head), cpu=cpu)


def test_a_cpu_gets_float32_and_no_compiler():
    found = settings()
    assert (found["dtype"], found["enforce_eager"]) == ("float32", True)
    assert settings(precision="bfloat16")["dtype"] == "bfloat16"


def test_a_gpu_gets_bfloat16_and_its_compiler():
    found = settings(cpu=False)
    assert (found["dtype"], found["enforce_eager"]) == ("bfloat16", False)


@pytest.mark.parametrize(
    ("head", "runner"), [("generative", "generate"), ("scalar", "pooling"), ("step", "pooling")]
)
def test_the_runner_is_that_of_the_head(head, runner):
    found = settings(head=head)
    assert found["runner"] == runner
    assert found["max_model_len"] == 512
    assert found["enable_prefix_caching"]


def test_the_operator_has_the_last_word():
    found = settings(vllm={"enforce_eager": False, "tensor_parallel_size": 2})
    assert not found["enforce_eager"]
    assert found["tensor_parallel_size"] == 2


def test_python_of_a_model_runs_only_where_the_operator_says_so():
    assert not settings()["trust_remote_code"]
    assert settings(trust_remote_code=True)["trust_remote_code"]


def test_the_device_must_be_that_of_the_build():
    with pytest.raises(ConfigError, match="CPUs"):
        settings(device="cuda")
    with pytest.raises(ConfigError, match="GPUs"):
        settings(cpu=False, device="cpu")


def test_logits_that_are_not_finite_are_no_score():
    assert finite([0.5, -2.0]) == (0.5, -2.0)
    with pytest.raises(EngineError) as raised:
        finite([0.5, float("nan")])
    assert raised.value.reason == "SCORE_NOT_FINITE"


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vllm is installed")
def test_without_vllm_the_start_says_what_to_install():
    with pytest.raises(StartupError, match=r'model judge: vLLM cannot be imported.*"vllm"'):
        make("judge", EngineConfig(path="/models/m", engine="vllm"), opened())
