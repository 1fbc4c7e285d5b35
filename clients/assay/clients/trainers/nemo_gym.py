"""A resources server for NeMo Gym (0.7) whose `verify` asks a reward server.

    # resources_servers/assay/app.py
    from assay.clients.trainers.nemo_gym import AssayResourcesServer

    if __name__ == "__main__":
        AssayResourcesServer.run_webserver()

Policies for a fault (`on_fault`, docs/trainers/nemo-gym.md):

- "raise" (the default): the answer is 503. Gym's collector stops; NeMo RL draws the prompt anew.
- "mask", for collecting and not for training: the row has the reward 0.0, because it must have one;
  `_ng_failure_class`, so that Gym's collector keeps it apart and tries it again when it resumes;
  and `mask_sample`, at the top and in `instance_config`: no gradient in NeMo RL, *which still
  counts that 0.0 in the group's baseline* (`assay lab --only nemo-rl-mask:fault`).

So is the answer, whatever the policy, where no server can judge or too few samples are judged.
"""

from __future__ import annotations

from typing import Any

from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    SimpleResourcesServer,
)
from pydantic import ConfigDict
from starlette.responses import JSONResponse

from assay.clients.trainers.common.contact import FirstContactError
from assay.clients.trainers.common.fault_ratio import TooManyFaultsError
from assay.clients.trainers.common.faults import FaultPolicy, read_policy
from assay.clients.trainers.common.gym_rows import FAULTED, unsaid
from assay.clients.trainers.common.rows import Message
from assay.clients.trainers.common.scoring import score_awaited
from assay.clients.trainers.common.settings import NAMES, Settings, read_settings
from assay.clients.trainers.common.single import read_item
from assay.clients.types import Fault, Judgement

_REFERENCES = ("reference", "expected_answer", "answer")


class AssayResourcesServerConfig(BaseResourcesServerConfig):
    """The server's settings; an empty one is read from the environment: ASSAY_TARGET, ..."""

    target: str = ""
    token: str = ""
    tls_ca: str = ""
    verifier: str = ""
    task: str = ""
    timeout_s: float | None = None
    on_fault: str = ""
    max_fault_ratio: float | None = None


class AssayVerifyRequest(BaseVerifyRequest):
    """A rollout with the columns of its row: "expected_answer" or "reference", "verifier", ..."""

    model_config = ConfigDict(extra="allow")


class AssayResourcesServer(SimpleResourcesServer):
    """Judges rollouts by a reward server."""

    config: AssayResourcesServerConfig

    def model_post_init(self, context: Any) -> None:
        """Reads the settings, so that a wrong one stops the start.

        Raises:
            ConfigError: no target is given, or the policy is neither "raise" nor "mask".
        """
        super().model_post_init(context)
        self._policy()

    async def verify(self, body: AssayVerifyRequest) -> JSONResponse:
        """The rollout's row with its reward; for a fault 503, or a failed row."""
        settings = self._settings()
        data = unsaid(body.model_dump(mode="json"))
        row = _row(body.model_extra or {})
        item = read_item(settings, _prompt(data), _messages(data), row, trainer="nemo-gym")
        try:
            [result] = await score_awaited(settings, [item])
        except (FirstContactError, TooManyFaultsError) as error:
            return unserved(type(error).__name__, str(error))
        if isinstance(result.outcome, Fault):
            if self._policy() is FaultPolicy.RAISE:
                return unserved(result.outcome.reason, result.outcome.message)
            return failed_row(data, result.outcome)
        return JSONResponse({**data, **_judged(result.outcome)})

    def _settings(self) -> Settings:
        given = self.config.model_dump()
        return read_settings({name: given.get(name) for name in NAMES if given.get(name) != ""})

    def _policy(self) -> FaultPolicy:
        allowed = [FaultPolicy.RAISE, FaultPolicy.MASK]
        return read_policy(self._settings().on_fault or "raise", allowed, "NeMo Gym")


def _judged(judgement: Judgement) -> dict[str, Any]:
    return {
        "reward": judgement.reward,
        "reward_components": {part.name: part.score for part in judgement.components},
        "verdict": judgement.verdict,
        "extracted_answer": judgement.extracted_answer,
        "explanation": judgement.explanation,
    }


def failed_row(data: dict[str, Any], fault: Fault) -> JSONResponse:
    """A row without a reward, in the words that Gym and NeMo RL leave it out by."""
    return JSONResponse(
        {
            **data,
            "reward": 0.0,
            "mask_sample": True,
            "failure_kind": "judge_failed",
            "failure_reason": f"{fault.reason}: {fault.message}"[:2000],
            "instance_config": {**(data.get("instance_config") or {}), "mask_sample": True},
            "_ng_failure_class": FAULTED,
            "_ng_failure_reason": fault.reason,
            "_ng_failure_message": fault.message,
        }
    )


def unserved(reason: str, message: str) -> JSONResponse:
    """The answer to a call that failed, by no doing of the policy's."""
    return JSONResponse({"fault": {"reason": reason, "message": message}}, status_code=503)


def _row(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns for judging; of the names of a reference the first that exists."""
    row = {name: columns[name] for name in ("verifier", "task", "parameters") if columns.get(name)}
    reference = next((columns[name] for name in _REFERENCES if columns.get(name) is not None), None)
    if reference is not None:
        row["reference"] = reference
    return row


def _prompt(data: dict[str, Any]) -> str | list[Message]:
    given = data["responses_create_params"]["input"]
    if isinstance(given, str):
        return given
    return [message for message in given if message.get("role") and message.get("content")]


def _messages(data: dict[str, Any]) -> list[Message]:
    """The policy's texts and calls as one message, without reasoning."""
    output = data["response"]["output"]
    text = "".join(
        part.get("text") or ""
        for one in output
        if one.get("type") == "message"
        for part in one.get("content") or ()
        if part.get("type") == "output_text"
    )
    calls = [one for one in output if one.get("type") == "function_call"]
    return [{"role": "assistant", "content": text, "tool_calls": calls}]
