"""One process is a world of its own; what launchers may not set is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from accelerate import PartialState

from assay.kit.errors import ConfigError
from assay.trainer.core.world import World, check_engine, join

PRESETS = Path(__file__).parents[2] / "configs" / "accelerate"


def test_alone_everything_is_its_own() -> None:
    world = join(on_cuda=False)
    assert world == World()
    assert world.main
    assert world.same("value") == "value"
    assert world.any(True)
    assert not world.any(False)
    world.wait()


def test_processes_wait_for_one_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process group's time-out is that of generation and judging, and the outage on top."""
    asked: list[timedelta] = []

    def state(*, cpu: bool, timeout: timedelta) -> PartialState:
        asked.append(timeout)
        return PartialState(cpu=cpu)

    monkeypatch.setattr("assay.trainer.core.world.PartialState", state)
    for max_outage_s in (0.0, 1800.0, 86_400.0):
        join(on_cuda=False, max_outage_s=max_outage_s)
    assert [one - asked[0] for one in asked] == [
        timedelta(seconds=seconds) for seconds in (0, 1800, 86_400)
    ]
    assert asked[0] >= timedelta(hours=1)


def test_weights_that_one_process_reads_need_fsdp2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "true")
    with pytest.raises(ConfigError, match=r"fsdp_cpu_ram_efficient_loading .* fsdp_version: 2"):
        join(on_cuda=False)
    monkeypatch.setenv("FSDP_VERSION", "2")
    assert join(on_cuda=False).count == 1
    monkeypatch.delenv("FSDP_VERSION")
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "false")
    assert join(on_cuda=False).count == 1


@pytest.mark.parametrize("engine", ["FSDP", "DEEPSPEED"])
def test_weights_that_were_to_be_sharded_are(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """accelerate itself says nothing when it does not shard."""
    import types

    import torch
    from accelerate.utils import DistributedType

    def accelerator(kind: DistributedType) -> types.SimpleNamespace:
        return types.SimpleNamespace(distributed_type=kind, device=torch.device("cpu"))

    check_engine(accelerator(DistributedType.MULTI_CPU))
    monkeypatch.setenv(f"ACCELERATE_USE_{engine}", "true")
    check_engine(accelerator(DistributedType[engine]))
    with pytest.raises(ConfigError, match=rf"asks for {engine}, .* the policy is on cpu"):
        check_engine(accelerator(DistributedType.MULTI_CPU))


@pytest.mark.parametrize("path", sorted(PRESETS.glob("*.yaml")), ids=lambda path: path.stem)
def test_presets_are_what_accelerate_reads(path: Path) -> None:
    """With the command at their top, and without what a run would refuse."""
    from accelerate.commands.config.config_args import load_config_from_file

    found = load_config_from_file(str(path))
    kind = path.stem.partition("_")[0]
    expected = {"ddp": "MULTI_GPU", "fsdp2": "FSDP", "zero3": "DEEPSPEED"}
    assert found.distributed_type.value == expected[kind]
    text = path.read_text()
    processes = 8 * found.num_machines
    command = f"configs/accelerate/{path.name} --num_processes {processes}"
    assert f"accelerate launch --config_file {command}" in text
    assert found.num_processes == processes
    assert "-m assay.trainer configs/" in text
    assert ("--main_process_ip" in text) == (found.num_machines > 1)
    if kind == "fsdp2":
        assert found.fsdp_config["fsdp_version"] == 2
        assert found.fsdp_config["fsdp_cpu_ram_efficient_loading"] is True
    if path.stem == "zero3":
        assert found.deepspeed_config["zero_stage"] == 3
        assert found.deepspeed_config["zero3_init_flag"] is False
