"""One process is a world of its own; what launchers may not set is refused."""

from __future__ import annotations

import pytest

from assay.rpc.errors import ConfigError
from assay.trainer.world import World, join


def test_alone_everything_is_its_own() -> None:
    world = join(on_cuda=False)
    assert world == World()
    assert world.main
    assert world.same("value") == "value"
    assert world.any(True)
    assert not world.any(False)
    world.wait()


def test_weights_must_be_on_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "true")
    with pytest.raises(ConfigError, match=r"fsdp_cpu_ram_efficient_loading .* set it to false"):
        join(on_cuda=False)
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "false")
    assert join(on_cuda=False).count == 1
