"""One call's request id, tenant, and facts for its log line.

The request id is that of the caller's `x-request-id` metadata if it is sane, else one made here.
It is in every log record of the call, goes back to the caller in trailing metadata, and travels
on with every call that a service makes meanwhile.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, cast

from assay.kit.errors import ConfigError
from assay.kit.log_format import request_id_var

__all__ = [
    "AUTHORIZATION_KEY",
    "BY_CERTIFICATE",
    "METADATA_KEY",
    "REPLICA_KEY",
    "accept_request_id",
    "add_faults",
    "add_log_fields",
    "bearer",
    "begin_call",
    "request_id_var",
    "snake_case",
    "tenant_label_var",
    "tenant_var",
]

METADATA_KEY = "x-request-id"
AUTHORIZATION_KEY = "authorization"
REPLICA_KEY = "assay-replica"
"""Of calls about what one replica alone holds: the replica's name."""
tenant_var: ContextVar[str] = ContextVar("assay_tenant", default="")
"""The tenant of the call in progress; empty outside a call, and where no token is needed."""

tenant_label_var: ContextVar[str] = ContextVar("assay_tenant_label", default="")
"""What metrics call that tenant: its name where a token has it, else BY_CERTIFICATE."""

BY_CERTIFICATE = "(certificate)"
"""All tenants that certificates name, in metrics: who signs may sign any number of them.

No token's tenant can have this name.
"""

_log_fields_var: ContextVar[dict[str, object] | None] = ContextVar("assay_log_fields", default=None)
_TOKEN = re.compile(r"[!-~]{1,4096}")
_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def snake_case(method: str) -> str:
    """Turns "BatchScore" or "assay.api.reward.v1.RewardService.BatchScore" into "batch_score"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method.rpartition(".")[2]).lower()


def bearer(token: str) -> str:
    """The value of the `authorization` metadata for a token.

    Raises:
        ConfigError: metadata cannot carry the token, or it is empty. The message does not hold it.
    """
    if not _TOKEN.fullmatch(token):
        raise ConfigError(
            "the token must be 1 to 4096 visible ASCII characters: look for a space in it"
        )
    return f"Bearer {token}"


def accept_request_id(offered: str | bytes | None) -> str:
    """The caller's id if it is 1 to 128 letters, digits, '.', '_', ':' or '-'; else a new one."""
    if isinstance(offered, str) and _SANE.fullmatch(offered):
        return offered
    return uuid.uuid4().hex


def begin_call(request_id: str, tenant: str = "", label: str = "") -> dict[str, object]:
    """Makes `request_id`, `tenant` and its `label` in metrics the current ones in this task.

    Returns the fields that `add_log_fields` fills, to be logged when the call ends.
    """
    request_id_var.set(request_id)
    tenant_var.set(tenant)
    tenant_label_var.set(label)
    fields: dict[str, object] = {"tenant": tenant} if tenant else {}
    _log_fields_var.set(fields)
    return fields


def add_log_fields(**fields: object) -> None:
    """Adds facts, such as items=64, to the log line of this call.

    Never pass what a caller wrote (prompts, responses, references). Outside a call it does nothing.
    """
    current = _log_fields_var.get()
    if current is not None:
        current.update(fields)


def add_faults(results: Iterable[Any]) -> None:
    """Adds the number of faults among these results to that line."""
    current = _log_fields_var.get()
    if current is not None:
        faults = sum(result.WhichOneof("outcome") == "fault" for result in results)
        current["faults"] = cast("int", current.get("faults", 0)) + faults
