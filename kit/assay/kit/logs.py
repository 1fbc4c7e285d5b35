"""Logs: one record a line on stderr, as JSON or as text, with the request id of the call.

`call_ended` writes the one line of each call. No record of this package holds payload text or
secrets; the traceback of a defect may, and stays on the server.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

from assay.kit.errors import ConfigError
from assay.kit.log_format import JsonFormatter, RequestIdFilter, TextFormatter

CALL_LOGGER = "assay.kit.calls"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class _AssayHandler(logging.StreamHandler):  # type: ignore[type-arg]  # not generic at run time
    """A class of its own, so that a second `setup_logging` finds and replaces the first handler."""


def setup_logging(level: str = "INFO", json: bool = False) -> None:
    """Sends the records of this process to stderr; the last call holds.

    Raises:
        ConfigError: no such level; case does not matter.
    """
    if level.upper() not in _LEVELS:
        raise ConfigError(f"unknown log level {level!r}: choose one of {', '.join(_LEVELS)}")
    handler = _AssayHandler(sys.stderr)
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(JsonFormatter() if json else TextFormatter())
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known, _AssayHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for chatty in ("grpc", "asyncio"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def follow_stderr() -> None:
    """Sends the records to the current `sys.stderr`, which may have been replaced."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _AssayHandler):
            handler.setStream(sys.stderr)


def call_ended(
    *,
    method: str,
    code: str,
    reason: str,
    duration_ms: float,
    peer_kind: str,
    fields: Mapping[str, object],
    quiet: bool,
) -> None:
    """Writes the line of one call.

    `reason` is of the lexicon, empty for a call that went well; `peer_kind` is "ipv4", "ipv6" or
    "unix"; `quiet`, for health checks, logs at DEBUG instead of INFO.
    """
    facts: dict[str, object] = {"method": method, "code": code}
    if reason:
        facts["reason"] = reason
    facts |= {"duration_ms": round(duration_ms, 3), "peer": peer_kind}
    facts |= {key: value for key, value in fields.items() if key not in facts}
    logging.getLogger(CALL_LOGGER).log(
        logging.DEBUG if quiet else logging.INFO, "call", extra={"fields": facts}
    )
