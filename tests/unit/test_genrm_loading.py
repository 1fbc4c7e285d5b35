"""What is known of a model before its weights are read."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.genrm.engines import loading
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.worker.sampling import RowSampler, next_tokens
from assay.kit.errors import ConfigError, StartupError
from genrm_support import make_model, make_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("loading") / "model", "step", context=512)


def test_a_folder_is_opened(folder: Path) -> None:
    opened = loading.open_model("prm", EngineConfig(str(folder)))
    assert opened.head == "step"
    assert opened.context_tokens == 512
    assert opened.revision == loading.fingerprint(folder)
    assert len(opened.revision) == 12
    named = loading.open_model("prm", EngineConfig(str(folder), revision="v7", context_tokens=100))
    assert (named.revision, named.context_tokens) == ("v7", 100)


def test_other_weights_are_another_revision(folder: Path, tmp_path: Path) -> None:
    other = make_model(tmp_path / "other", "step", context=512, seed=1)
    same = make_model(tmp_path / "same", "step", context=512)
    assert loading.fingerprint(other) != loading.fingerprint(folder)
    assert loading.fingerprint(same) == loading.fingerprint(folder)


def test_a_large_file_is_known_by_blocks_spread_over_it(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    data = bytearray(random.Random(0).randbytes(5 << 20))
    path.write_bytes(data)
    before = loading.fingerprint(tmp_path)
    data[:] = bytes(byte ^ 1 for byte in data)
    path.write_bytes(data)
    assert loading.fingerprint(tmp_path) != before
    data[-1] ^= 1
    path.write_bytes(data)
    assert loading.fingerprint(tmp_path) != before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"context_tokens": 1000}, "512 positions"),
        ({"chat_template": "/nowhere.jinja"}, "/nowhere.jinja cannot be read"),
        ({"step_token": "two words"}, "not one token"),
    ],
)
def test_settings_that_contradict_the_model(
    folder: Path, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        loading.open_model("prm", EngineConfig(str(folder), **change))


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    with pytest.raises(StartupError, match=r"model judge \(.*\) cannot be read: .*; give a folder"):
        loading.open_model("judge", EngineConfig(str(tmp_path)))


@pytest.mark.parametrize(
    ("architecture", "head"),
    [
        ("LlamaForCausalLM", "generative"),
        ("GPT2LMHeadModel", "generative"),
        ("Qwen2ForSequenceClassification", "scalar"),
        ("LlamaForTokenClassification", "step"),
        ("Qwen2ForProcessRewardModel", "step"),
    ],
)
def test_the_architecture_tells_the_head(architecture: str, head: str) -> None:
    hf_config = SimpleNamespace(architectures=[architecture])
    assert loading.head_of("m", EngineConfig("m"), hf_config) == head


def test_an_architecture_that_does_not_tell() -> None:
    with pytest.raises(ConfigError, match=r"LlamaModel.*set head"):
        loading.head_of("m", EngineConfig("m"), SimpleNamespace(architectures=["LlamaModel"]))


@pytest.mark.parametrize(
    ("settings", "written", "token"),
    [
        ({}, None, "<extra_0>"),
        ({}, "step-end", None),
        ({"step_layout": "step-end"}, None, None),
        ({"step_token": "<|im_end|>"}, "step-end", "<|im_end|>"),
    ],
)
def test_where_a_step_head_is_read(
    settings: dict[str, Any], written: str | None, token: str | None
) -> None:
    hf_config = SimpleNamespace(**({"assay_step_layout": written} if written else {}))
    config = EngineConfig("m", **settings)
    assert loading.step_layout("m", config, hf_config, make_tokenizer()).token == token


def test_sampling_follows_the_distribution() -> None:
    import torch

    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    numbers = random.Random(0)
    for top_p, temperature, want in [
        (1.0, 1.0, [0.5, 0.3, 0.15, 0.05]),
        (0.7, 1.0, [0.625, 0.375, 0, 0]),
        (1.0, 0.5, [0.685, 0.247, 0.0616, 0.00685]),
    ]:
        samplers = [RowSampler(temperature, top_p, numbers)] * 4000
        drawn = next_tokens(logits.expand(4000, -1), samplers)
        for token, share in enumerate(want):
            assert drawn.count(token) / 4000 == pytest.approx(share, abs=0.03)
            assert share or token not in drawn


def test_rows_that_are_not_finite_have_no_next_token() -> None:
    import torch

    rows = torch.tensor([[1.0, 2.0], [float("nan"), 0.0], [float("-inf")] * 2, [float("inf"), 0.0]])
    greedy = [RowSampler(0.0, 1.0, random.Random(0))] * 4
    assert next_tokens(rows, greedy) == [1, None, None, None]
    chance = [RowSampler(1.0, 0.5, random.Random(0))] * 4
    assert next_tokens(rows, chance)[1:] == [None, None, None]
