"""TRL's AsyncGRPOTrainer: a function that travels to another process, and its scoring of groups."""

from __future__ import annotations

import math
import multiprocessing
import pickle
from typing import Any

import pytest

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients import EmbeddedServices
from assay.clients.adapters.faults import FaultError
from assay.clients.trl import reward_function, sync_reward_function
from assay.rpc.errors import ConfigError

pytest.importorskip("aiohttp", reason="see `make test-adapters`")

from trl_async_support import in_child, scored

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

MAKERS = pytest.mark.parametrize("make", [reward_function, sync_reward_function])


@MAKERS
def test_it_travels_to_a_spawned_process(server: EmbeddedServices, make: Any) -> None:
    pickled = pickle.dumps(make(server.address, task="math", name="mine"))
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(
        target=in_child, args=(pickled, [RIGHT, WRONG], there)
    )
    child.start()
    there.close()
    assert here.recv() == [1.0, 0.0]
    child.join()


@MAKERS
def test_a_fault_has_no_reward_and_no_advantage(trouble: Trouble, make: Any) -> None:
    with make(trouble.target, task="math", timeout_s=1.5).client as client:
        samples = scored(make(client, task="math"), [RIGHT, WRONG], trouble.reference)
        assert [sample.advantage for sample in samples] == [0.0, 0.0]
        assert all(math.isnan(sample.metrics["reward"]) for sample in samples)
        with pytest.raises(FaultError, match=trouble.reason):
            scored(make(client, task="math", on_fault="raise"), [RIGHT, WRONG], trouble.reference)


def test_trl_cannot_drop() -> None:
    with pytest.raises(ConfigError, match="with TRL choose one of: mask, raise"):
        reward_function("127.0.0.1:1", on_fault="drop")
