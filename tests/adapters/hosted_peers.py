"""An operator's file: rewards of verifiers, NeMo Gym and TRL, hosted."""

from __future__ import annotations

import os
from typing import Any
from unittest.mock import MagicMock

import verifiers.v1 as vf
from nemo_gym.server_utils import ServerClient
from resources_servers.equivalence_rule.app import (
    EquivalenceRuleResourcesServer,
    EquivalenceRuleResourcesServerConfig,
)
from trl.rewards import think_format_reward

from assay.environments.hosting import (
    host_function,
    host_nemo_gym,
    host_taskset,
)


class Data(vf.TaskData):
    answer: str
    broken: str = ""


class Sums(vf.Task[Data, vf.State, vf.TaskConfig]):
    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        if self.data.broken == "raises":
            raise RuntimeError("the judge is away")
        return float(trace.last_reply == self.data.answer)

    @vf.reward(weight=0.5)
    async def brief(self, trace: vf.Trace) -> float:
        return float("nan") if self.data.broken == "nan" else float(len(trace.last_reply) < 9)


class SumsTaskset(vf.Taskset[Sums, vf.TasksetConfig]):
    def load(self) -> list[Sums]:
        return []


class Boxed(vf.Task[Data, vf.State, vf.TaskConfig]):
    @vf.reward
    async def tests(self, trace: vf.Trace, runtime: Any) -> float:
        return 1.0


def server() -> Any:
    config = EquivalenceRuleResourcesServerConfig(host="127.0.0.1", port=1, entrypoint="app.py")
    return EquivalenceRuleResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))


def masking() -> Any:
    made = server()
    real = type(made).verify

    class Masked(type(made)):  # type: ignore[misc]
        async def verify(self, body: Any) -> Any:
            answer = await real(self, body)
            return answer.model_copy(update={"mask_sample": True, "failure_kind": "judge_failed"})

        verify.__annotations__ = real.__annotations__

    made.__class__ = Masked
    return made


taskset = host_taskset(SumsTaskset(vf.TasksetConfig(id="sums")))
equivalence = host_nemo_gym(server)
masked = host_nemo_gym(masking)
running = host_nemo_gym(os.environ.get("GYM_URL", "http://127.0.0.1:1"))
thinking = host_function(think_format_reward, conversational=True, deterministic=True)
