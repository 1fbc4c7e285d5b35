"""The worker and the loop for ROLL, which is on no package index.

Where ROLL's own source can be imported (PYTHONPATH), the tests use it; elsewhere stand-ins with the
signatures of its 0.3.0: what a worker is made of, and the part of the rollout loop that awaits
`_generate_and_reward`.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients.trainers.common.contact import FirstContactError
from assay.clients.trainers.common.fault_ratio import TooManyFaultsError
from assay.clients.trainers.common.faults import FaultError
from trainer_support import tiny_tokenizer

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

TOKENIZER = tiny_tokenizer()


class Batch:
    """ROLL's DataProto, as far as a reward worker sees it."""

    def __init__(self, batch: dict[str, Any], non_tensor_batch: dict[str, Any]) -> None:
        self.batch, self.non_tensor_batch = batch, non_tensor_batch

    @classmethod
    def from_dict(cls, tensors: dict[str, Any], non_tensors: Any = None) -> Batch:
        return cls(tensors, non_tensors or {})


class Worker:
    """ROLL's worker: a rank, and its part of the settings."""

    def __init__(self, worker_config: Any) -> None:
        self.worker_config = worker_config
        self.rank_info = types.SimpleNamespace(rank=0, world_size=1)


class Loop:
    """ROLL's loop, of which one method awaits the reward."""

    async def _generate_and_reward(self, context: Any, req: Any, domain: str) -> Any:
        return [await context.compute_rewards(req=req, domain=domain)]


def stand_ins() -> dict[str, dict[str, Any]]:
    dispatch = types.SimpleNamespace(ONE_TO_ALL=1, DP_MP_COMPUTE=2)
    return {
        "roll.distributed.executor.worker": {"Worker": Worker},
        "roll.distributed.scheduler.decorator": {
            "Dispatch": dispatch,
            "register": lambda **_: lambda function: function,
        },
        "roll.distributed.scheduler.protocol": {"DataProto": Batch},
        "roll.distributed.scheduler.user_defined_rollout_loop": {"UserDefinedRolloutLoop": Loop},
        "roll.models.model_providers": {"default_tokenizer_provider": lambda **_: TOKENIZER},
    }


def _found() -> bool:
    try:
        return importlib.util.find_spec("roll.distributed") is not None
    except ModuleNotFoundError:
        return False


HAS_ROLL = _found()


@pytest.fixture(scope="module")
def adapter() -> Iterator[Any]:
    given = {} if HAS_ROLL else stand_ins()
    for name, members in given.items():
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            module = types.ModuleType(".".join(parts[:count]))
            module.__path__ = []
            sys.modules.setdefault(module.__name__, module)
        sys.modules[name].__dict__.update(members)
    import assay.clients.trainers.roll as module

    yield module
    for name in [name for name in sys.modules if name == "roll" or name.startswith("roll.")]:
        del sys.modules[name]
    del sys.modules["assay.clients.trainers.roll"]


def worker_of(adapter: Any) -> Any:
    """A worker as ROLL makes it, without ROLL's cluster around it."""
    from assay.clients.trainers.common.settings import read_settings

    if not HAS_ROLL:
        return adapter.AssayRewardWorker(types.SimpleNamespace(model_args=None))
    worker = adapter.AssayRewardWorker.__new__(adapter.AssayRewardWorker)
    worker.tokenizer, worker.settings = TOKENIZER, read_settings()
    return worker


def batch_of(adapter: Any, responses: list[str], **columns: list[Any]) -> Any:
    TOKENIZER.padding_side = "right"
    encoded = TOKENIZER(responses, return_tensors="pt", padding=True)["input_ids"]
    prompts = TOKENIZER(["2 + 2?"] * len(responses), return_tensors="pt")["input_ids"]
    return adapter.DataProto.from_dict(
        {"responses": encoded, "prompts": prompts},
        {name: np.array(values, dtype=object) for name, values in columns.items()},
    )


def test_a_batch_gets_the_servers_rewards(adapter: Any, environment: pytest.MonkeyPatch) -> None:
    data = batch_of(adapter, [RIGHT, WRONG, RIGHT], ground_truth=["4", "4", "4"], tag=["a"] * 3)
    answer = worker_of(adapter).compute_rewards(data).batch
    assert answer["response_level_rewards"].tolist() == [1.0, 0.0, 1.0]
    assert answer["scores"].tolist() == [1.0, 0.0, 1.0]
    assert answer["token_level_rewards"].shape == data.batch["responses"].shape
    assert not answer["token_level_rewards"].any()
    assert answer["response_level_rewards"].dtype == torch.float32


def test_the_worker_raises_for_a_fault(adapter: Any, troubled: Trouble) -> None:
    data = batch_of(adapter, [RIGHT, RIGHT], ground_truth=["4", troubled.reference])
    with pytest.raises(FaultError, match=troubled.reason):
        worker_of(adapter).compute_rewards(data)


class Context:
    """A prompt's context; what a worker raised comes through Ray as ROLL's scheduler gets it."""

    prompt_id = 7

    def __init__(self, error: Exception, *, is_val: bool) -> None:
        self.error, self.is_val = error, is_val

    async def compute_rewards(self, req: Any, domain: str) -> Any:
        raise self.error


def faulted() -> Exception:
    from assay.clients import Fault

    error = FaultError("0", Fault("QUEUE_FULL", "the queue is full"))
    try:
        from ray.exceptions import RayTaskError
    except ModuleNotFoundError:
        return error
    through_ray: Exception = RayTaskError("compute_rewards", "", error).as_instanceof_cause()
    return through_ray


def loop_of(adapter: Any) -> Any:
    """The adapter's loop; of ROLL's own the generation in front of the reward is left out."""
    loop = adapter.AssayRolloutLoop()
    if HAS_ROLL:
        loop._generate_and_reward_impl = Loop()._generate_and_reward
    return loop


async def test_the_loop_drops_a_prompt_with_a_fault(adapter: Any) -> None:
    context = Context(faulted(), is_val=False)
    assert await loop_of(adapter)._generate_and_reward(context, None, "math") is None


async def test_a_validation_is_not_shortened(adapter: Any) -> None:
    with pytest.raises(FaultError):
        await loop_of(adapter)._generate_and_reward(Context(faulted(), is_val=True), None, "math")


async def test_other_errors_are_roll_s_own(adapter: Any) -> None:
    context = Context(ZeroDivisionError(), is_val=False)
    with pytest.raises(ZeroDivisionError):
        await loop_of(adapter)._generate_and_reward(context, None, "math")


def test_the_worker_does_not_begin_where_nobody_judges(
    adapter: Any, environment: pytest.MonkeyPatch, nobody: str
) -> None:
    environment.setenv("ASSAY_TARGET", nobody)
    environment.setenv("ASSAY_TIMEOUT_S", "1")
    with pytest.raises(FirstContactError, match="no reward server answers"):
        worker_of(adapter).compute_rewards(batch_of(adapter, [RIGHT], ground_truth=["4"]))


async def test_the_loop_ends_with_too_many_faults(
    adapter: Any, environment: pytest.MonkeyPatch
) -> None:
    worker = worker_of(adapter)
    data = batch_of(adapter, [RIGHT] * 32, ground_truth=[" "] * 32)
    for _ in range(2):
        with pytest.raises(FaultError):
            worker.compute_rewards(data)
    with pytest.raises(TooManyFaultsError) as caught:
        worker.compute_rewards(data)
    with pytest.raises(TooManyFaultsError):
        await loop_of(adapter)._generate_and_reward(
            Context(caught.value, is_val=False), None, "math"
        )
