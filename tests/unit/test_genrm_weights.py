"""Weights that are made smaller when they are loaded, or are so already."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest

from assay.genrm.engines import loading
from assay.genrm.engines.config import EngineConfig
from genrm_engine_support import Alone, Worker
from genrm_support import make_model

IDS = tuple(range(10, 60))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("weights") / "model")


@pytest.mark.parametrize(
    ("quantization", "package"),
    [("bnb-int8", "bitsandbytes"), ("bnb-nf4", "bitsandbytes"), ("torchao-int8", "torchao")],
)
def test_a_package_that_is_not_there_is_named(
    folder: Path, quantization: str, package: str
) -> None:
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    with pytest.raises(Exception, match=f"needs the package {package}.*pip install") as caught:
        Worker(folder, "generative", quantization=quantization)
    assert type(caught.value).__name__ == "LoadError"


@pytest.mark.filterwarnings("ignore")  # of torchao itself
def test_weights_of_eight_bits_judge_nearly_the_same(folder: Path) -> None:
    pytest.importorskip("torchao", reason="torchao is not installed")
    worker = Worker(folder, "generative", quantization="torchao-int8")
    whole = Worker(folder, "generative")
    jobs = [{"kind": "choose", "ids": IDS[n:], "options": [[5], [6, 7]]} for n in range(8)]
    for small, large in zip(worker.ask(jobs), whole.ask(jobs), strict=True):
        for one, other in zip(small["logprobs"], large["logprobs"], strict=True):
            assert one == pytest.approx(other, abs=0.5)
            assert one != other
    assert worker.network.shape == whole.network.shape  # beginnings are shared as before


def test_what_is_quantised_already_says_what_it_needs(folder: Path, tmp_path: Path) -> None:
    copy = make_model(tmp_path / "gptq")
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(Exception, match="quantised already, by gptq; leave quantization out"):
        Worker(copy, "generative", quantization="torchao-int8")
    if importlib.util.find_spec("gptqmodel") is None:
        with pytest.raises(ImportError, match=r"(?i)gptq"):
            Worker(copy, "generative")


def test_a_revision_says_how_weights_were_made_smaller(folder: Path) -> None:
    plain = loading.revision_of(EngineConfig(str(folder)), str(folder), None)
    small = EngineConfig(str(folder), quantization="torchao-int8")
    assert loading.revision_of(small, str(folder), None) == f"{plain}-torchao-int8"


def test_numbers_of_whole_weights_are_the_models(folder: Path) -> None:
    [answer] = Worker(folder, "generative").ask(
        [{"kind": "choose", "ids": IDS, "options": [[5], [6]]}]
    )
    alone = Alone(folder, "generative")
    assert math.exp(answer["logprobs"][0]) == pytest.approx(math.exp(alone.logprob(IDS, (5,))))
