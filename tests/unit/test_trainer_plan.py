"""`assay train --plan`: what is counted, what is refused, and the presets at scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.cli import main as cli
from assay.kit.errors import ConfigError
from assay.trainer.explain.explanation import explain
from assay.trainer.plan.command import read_size, setup_of
from assay.trainer.plan.estimate import GIB, MemoryPlan, Setup, estimate
from assay.trainer.settings import config as configs
from plan_support import shape
from scale_support import CONFIGS, METHODS, SCALES, SHAPES, given

CPU = ("model.device=cpu", "model.precision=float32", "optim.micro_batch=4")
GAE = "method.advantage.estimator=gae"


def planned(*overrides: str, **setup: Any) -> MemoryPlan:
    config = configs.build({}, [*CPU, *overrides], origin="test")
    return estimate(config, shape("60m"), Setup(**{"device": "cpu", "prompt": 8, **setup}))


@pytest.mark.slow
def test_whole_weights_gradients_and_moments_are_what_float32_takes() -> None:
    """Of the shape's own count: two embeddings, and layers of four and three matrices."""
    width, inner, words, layers = 512, 1536, 16384, 14
    layer = 4 * width * width + 3 * width * inner + 2 * width
    count = 2 * words * width + layers * layer + width
    plan = planned()
    assert plan.row("weights").learning == plan.row("weights").generating == 4 * count
    assert plan.row("gradients").learning == 4 * count
    assert plan.row("gradients").generating == 0
    assert plan.row("optimizer").learning == 8 * count
    assert plan.row("KV cache").generating == 32 * (8 + 256) * layers * 2 * width * 4
    assert plan.peak == max(plan.learning, plan.generating)


@pytest.mark.slow
def test_layers_that_are_alike_are_counted_by_a_few_of_them() -> None:
    """To the byte of what all of them come to."""
    from assay.trainer.plan import passes

    given: dict[str, Any] = {
        "rows": 2, "prompt": 8, "response": 24, "dtype": passes.torch.float32,
        "mixed": True, "lora": passes.LoraConfig(),
    }  # fmt: skip
    for checkpointing in (False, True):
        few = passes.kept(shape("60m"), checkpointing=checkpointing, **given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(passes, "_by_layers", lambda one, counted: counted(one))
            whole = passes.kept(shape("60m"), checkpointing=checkpointing, **given)
        assert (few.weights, few.parameters) == (whole.weights, whole.parameters)
        assert few.update == pytest.approx(whole.update, rel=0.01)


@pytest.mark.slow
def test_each_setting_spares_what_it_is_for() -> None:
    plain = planned(GAE, "method.loss.kl_coef=0.1")
    checkpointed = planned(GAE, "model.gradient_checkpointing=true")
    assert checkpointed.row("activations").learning < plain.row("activations").learning
    smaller = planned(GAE, "optim.micro_batch=1")
    assert smaller.row("activations").learning < plain.row("activations").learning / 2
    away = planned(GAE, "method.loss.kl_coef=0.1", 'model.offload=["reference","critic"]')
    assert away.row("reference").learning == 0
    assert away.row("critic").generating == 0
    assert 0 < away.row("critic").learning < plain.row("critic").learning
    assert away.generating < plain.generating
    tenth = planned("rollout.batch=4").row("KV cache").generating
    assert planned("rollout.batch=8").row("KV cache").generating == 2 * tenth
    lora = planned("model.lora.rank=8")
    assert lora.row("gradients").learning < plain.row("gradients").learning / 20
    halved = planned("model.lora.rank=8", "model.lora.base=bfloat16").row("weights").learning
    assert halved < 0.6 * lora.row("weights").learning
    eight = planned("optim.optimizer=adamw-8bit").row("optimizer").learning
    assert 4 * eight == plain.row("optimizer").learning
    assert planned("optim.optimizer=paged-adamw").row("optimizer").learning == 0
    trunk = planned(GAE, "method.critic.sharing=trunk").row("critic")
    assert trunk.learning == trunk.generating == 0


def test_shards_are_parts_of_the_whole_and_ddp_holds_its_buckets() -> None:
    one, four = planned(), planned(processes=4, sharding="fsdp2")
    for name in ("weights", "gradients", "optimizer"):
        assert four.row(name).learning == pytest.approx(one.row(name).learning / 4, rel=1e-6)
    ddp = planned(processes=4, sharding="ddp")
    assert ddp.row("weights") == one.row("weights")
    assert ddp.row("gradients").learning == 2 * one.row("gradients").learning


@pytest.mark.parametrize(
    ("text", "size"), [("80GB", 80 * 10**9), ("1.5 GiB", int(1.5 * GIB)), ("512", 512)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert read_size(text) == size
    with pytest.raises(ConfigError, match="--memory '80 apples' is no size"):
        read_size("80 apples")


def call(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["train", "--plan", *arguments])
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A run of a model of which there is a configuration, and no weights."""
    shape("60m").save_pretrained(tmp_path / "model")
    path = tmp_path / "run.toml"
    tree = configs.build({}, [f"model.name={tmp_path / 'model'}", *CPU], origin="test")
    path.write_text(configs.to_toml(tree))
    return path


@pytest.mark.slow
def test_a_plan_is_printed_and_what_does_not_fit_is_refused_with_what_would(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capfd, str(file))
    assert code == 0, err
    for said in ("weights", "KV cache", "32 rows of 768 tokens", "at most 8,192 tokens", "in all"):
        assert said in out
    cuda = ("model.device=auto", "model.precision=mixed", "--memory", "1500MB")
    code, out, err = call(capfd, str(file), *cuda)
    assert code == 1
    (line,) = [one for one in err.splitlines() if one.startswith("assay: error")]
    assert "GiB are needed while learning, and a device has 1.40 GiB less 10%; this fits:" in line
    found = line.partition("this fits: ")[2].split()
    assert "model.gradient_checkpointing=true" in found
    code, out, err = call(capfd, str(file), *cuda, *(part.strip("'") for part in found))
    assert code == 0, err
    code, _, err = call(capfd, str(file), *cuda[:3], "300MB")
    assert code == 1
    assert "does not suffice; shard the weights over more processes" in err
    code, _, err = call(capfd)
    assert code == 2
    assert "--plan needs a CONFIG.toml" in err


def test_launchers_say_how_weights_are_dealt(file: Path, tmp_path: Path) -> None:
    config = configs.load(file, ["model.device=auto"])
    found = setup_of(
        config, memory="80GB", launcher=CONFIGS / "accelerate" / "fsdp2_two_nodes.yaml",
        processes=32, prompt=512,
    )  # fmt: skip
    assert (found.device, found.processes, found.machines, found.shards) == ("cuda", 32, 4, 32)
    none = setup_of(config, memory="1GB", launcher=None, processes=2, prompt=512)
    assert (none.sharding, none.shards) == ("ddp", 1)
    with pytest.raises(ConfigError, match=r"--accelerate .*absent.yaml cannot be read"):
        setup_of(config, memory="", launcher=tmp_path / "absent.yaml", processes=0, prompt=1)


@pytest.mark.parametrize(
    ("scale", "method"),
    [
        pytest.param(scale, method, marks=() if method == "dapo" else pytest.mark.slow)
        for scale in SCALES
        for method in METHODS
    ],
)
def test_presets_at_scale_are_explained_and_fit_what_they_are_for(scale: str, method: str) -> None:
    from transformers import Qwen2Config

    config = configs.load(CONFIGS / f"{method}.toml", given(method, scale))
    text = "\n".join(line for part in explain(config).sections for line in part.lines)
    assert "activation checkpointing" in text
    assert config.rollout.backend != "hf"
    assert config.rollout.batch
    # a critic of as many weights, and long responses: four machines, as the file says
    large = scale == "32b" and method in ("vapo", "t_ppo")
    launcher = CONFIGS / "accelerate" / SCALES[scale] if SCALES[scale] else None
    setup = setup_of(
        config, memory="80GB", launcher=launcher, processes=32 if large else 0, prompt=512
    )
    plan = estimate(config, Qwen2Config(**SHAPES[scale]), setup)
    assert plan.fits, (plan.learning / GIB, plan.generating / GIB)
    assert plan.peak > 0.2 * setup.memory
