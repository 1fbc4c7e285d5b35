"""What the processes of a launcher tell one another beside their collectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from assay.kit.errors import ConfigError
from assay.trainer import launch
from assay.trainer.launch import Peers
from assay.trainer.records.folder import POLICY_RUNS, RunFolder
from assay.trainer.settings import config


@pytest.fixture
def processes() -> Callable[[int], list[Peers]]:
    """So many, each a thread that shares a store."""
    return lambda count: [Peers(store, n) for store in [dist.HashStore()] for n in range(count)]


@pytest.fixture
def none_launched() -> Iterator[None]:
    launch.peers.cache_clear()
    yield
    launch.peers.cache_clear()


def test_without_a_launcher_there_are_no_peers(
    none_launched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del none_launched
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert launch.peers() is None
    assert launch.is_main()


def test_one_launched_process_needs_no_store(
    none_launched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del none_launched
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("RANK", "0")
    assert launch.peers() is None


def test_all_get_what_the_first_makes(processes: Callable[[int], list[Peers]]) -> None:
    made = []

    def make() -> str:
        made.append("folder")
        return "runs/tiny"

    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(lambda peers: peers.same("folder", make), reversed(processes(3))))
    assert told == ["runs/tiny"] * 3
    assert made == ["folder"]


def test_an_error_of_all_is_for_the_first_to_say(
    processes: Callable[[int], list[Peers]],
) -> None:
    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(Peers.speaks, reversed(processes(3))))
    assert said == [False, False, True]


def test_an_error_of_one_is_for_it_to_say_and_what_follows_for_nobody(
    processes: Callable[[int], list[Peers]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_FIRST_SPEAKS", timedelta(seconds=0.05))
    first, second, third = processes(3)
    assert second.speaks()
    assert not third.speaks()
    assert not first.speaks()


def test_without_a_store_the_first_speaks() -> None:
    class Gone:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("connection reset")

    assert Peers(Gone(), 0).speaks()
    assert not Peers(Gone(), 1).speaks()


def test_the_first_opens_the_folder_for_all(
    processes: Callable[[int], list[Peers]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Settings travel as text: the others may not see the folder yet."""
    first, second = processes(2)
    settings = config.build({"rollout": {"prompts_per_step": 2}}, ["run.seed=7"], origin="test")
    monkeypatch.setattr(launch, "peers", lambda: first)
    assert (
        launch.opened(POLICY_RUNS, lambda: (RunFolder(tmp_path / "run"), settings))[1] is settings
    )
    monkeypatch.setattr(launch, "peers", lambda: second)
    folder, found = launch.opened(POLICY_RUNS, lambda: pytest.fail("the first one does that"))
    assert folder == RunFolder(tmp_path / "run")
    assert found == settings


def test_an_error_of_opening_is_raised_on_the_first(
    processes: Callable[[int], list[Peers]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Any:
        raise ConfigError("the folder is not empty")

    first, _ = processes(2)
    monkeypatch.setattr(launch, "peers", lambda: first)
    with pytest.raises(ConfigError, match="not empty"):
        launch.opened(POLICY_RUNS, fail)


@pytest.mark.parametrize(
    ("error", "of_peers"),
    [
        (RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer"), True),
        (dist.DistBackendError("NCCL communicator was aborted"), True),
        (RuntimeError("shapes do not match"), False),
        (ValueError("gloo"), False),
    ],
)
def test_a_collective_that_failed_is_told_from_a_defect(error: Exception, of_peers: bool) -> None:
    assert launch._is_of_peers(error) == of_peers
