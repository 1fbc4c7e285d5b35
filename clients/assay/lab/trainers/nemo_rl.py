"""NeMo RL on rows of a NeMo Gym resources server: its filter of masked samples, its advantages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from assay.lab.steps import Groups, LabRow, coefficients
from assay.lab.trainers.source import taken, version_of

_OK, _FAILED = 200, 500


@dataclass
class NemoRl:
    """Rows through `/verify` of our server in Gym's own web app, then as NeMo RL takes them.

    Attributes:
        policy: `on_fault` of the resources server; empty for its own.
    """

    title: str = "NeMo RL, raise"
    default: bool = True
    policy: str = ""
    compared = "advantages"
    read = "that Gym's agent answers 500, and that NeMo RL draws the prompt of one anew"

    def version(self) -> str:
        """See Contestant."""
        path = list(sys.path)
        import nemo_gym  # puts the folder that holds it behind all others

        sys.path[:] = path
        import nemo_gym.server_utils  # noqa: F401

        return f"{version_of('nemo_rl')}, nemo-gym {version('nemo-gym')}"

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; groups of one size have their baselines in one call."""
        again = taken(
            "nemo_rl", "experience/failures.py", "http_status_is_infra",
            _RETRIABLE_HTTP_STATUSES=frozenset(),
        )  # fmt: skip
        kept: list[LabRow] = []
        answers: dict[str, Any] = {}
        for group in groups:
            told = self._verified(group, target)
            if all(one is not None for one in told):
                kept += group
                answers |= {row.name: one for row, one in zip(group, told, strict=True)}
            elif not again(_FAILED):
                raise RuntimeError("NeMo RL takes a failure of the environment for the data's")
        if not kept:
            return coefficients({}, {})
        return self._advantages(kept, [answers[row.name] for row in kept])

    def _verified(self, group: Sequence[LabRow], target: str) -> list[Any]:
        from nemo_gym.server_utils import ServerClient
        from starlette.testclient import TestClient

        from assay.clients.trainers import nemo_gym as adapter

        config = adapter.AssayResourcesServerConfig(
            host="127.0.0.1", port=1, entrypoint="app.py", name="assay", target=target,
            verifier="exact", timeout_s=3.0, on_fault=self.policy,
        )  # fmt: skip
        server = adapter.AssayResourcesServer(
            config=config, server_client=MagicMock(spec=ServerClient)
        )
        with TestClient(server.setup_webserver()) as app:
            answers = [app.post("/verify", json=_rollout(row)) for row in group]
        return [one.json() if one.status_code == _OK else None for one in answers]

    def _advantages(self, rows: Sequence[LabRow], answers: Sequence[Any]) -> list[float]:
        import torch

        flags = taken(
            "nemo_rl", "experience/rollouts.py", "_extract_mask_sample_flags", torch=torch
        )
        drop = taken("nemo_rl", "algorithms/grpo.py", "_apply_mask_sample_filter", torch=torch)
        baseline = taken(
            "nemo_rl", "algorithms/utils.py", "calculate_baseline_and_std_per_prompt", torch=torch
        )
        kind = taken(
            "nemo_rl", "algorithms/advantage_estimator.py", "GRPOAdvantageEstimator",
            torch=torch, calculate_baseline_and_std_per_prompt=baseline,
        )  # fmt: skip
        batch = {
            "loss_multiplier": torch.ones(len(rows)),
            "mask_sample": flags([{"full_result": answer} for answer in answers]),
        }
        drop(batch)
        settings = SimpleNamespace(use_leave_one_out_baseline=True, normalize_rewards=True)
        advantages = kind(settings, None).compute_advantage(
            torch.tensor([[ord(row.group)] for row in rows]),
            torch.tensor([float(answer["reward"]) for answer in answers]),
            torch.ones(len(rows), 1),
        )[:, 0]
        left = batch["loss_multiplier"].tolist()
        tokens = {row.name: round(n) * len(row.response) for row, n in zip(rows, left, strict=True)}
        told = zip(rows, advantages.tolist(), strict=True)
        return coefficients({row.name: value for row, value in told}, tokens)


def _rollout(row: LabRow) -> dict[str, Any]:
    """A row as Gym's collector sends it."""
    said = {"type": "output_text", "text": row.response, "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed",
               "content": [said]}  # fmt: skip
    response = {
        "id": "r", "created_at": 0.0, "model": "m", "object": "response", "output": [message],
        "parallel_tool_calls": False, "tool_choice": "none", "tools": [],
    }  # fmt: skip
    asked = {"input": [{"role": "user", "content": row.prompt}]}
    return {"responses_create_params": asked, "response": response, "expected_answer": row.name}


NEMO_RL = NemoRl()
NEMO_RL_MASK = NemoRl("NeMo RL, mask", False, "mask")
