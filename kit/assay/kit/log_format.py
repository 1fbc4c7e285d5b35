"""The form of a log record, for the server and the processes that it starts. Loads no gRPC."""

from __future__ import annotations

import json as json_codec
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime

request_id_var: ContextVar[str] = ContextVar("assay_request_id", default="")
"""The id of the call in progress; empty outside a call. A worker sets it for each job."""
WORKER_FLAG = "--log-json"
"""Makes a process that the server starts log as it does."""


def fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    """A record's `extra={"fields": {...}}`."""
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, Mapping) else {}


class RequestIdFilter(logging.Filter):
    """Sets each record's `request_id`: of the call in progress, or empty."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets every record pass."""
        if not hasattr(record, "request_id"):
            record.request_id = request_id_var.get()
        return True


class JsonFormatter(logging.Formatter):
    """A JSON object a record: time, level, logger, pid, message, request_id, fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON; values that JSON does not know become text."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        if request_id := getattr(record, "request_id", ""):
            entry["request_id"] = request_id
        entry.update({key: value for key, value in fields_of(record).items() if key not in entry})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json_codec.dumps(entry, default=str)


class TextFormatter(logging.Formatter):
    """Time, level, logger, message, then key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, followed by the traceback if there is one."""
        when = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        fields = dict(fields_of(record))
        if request_id := getattr(record, "request_id", ""):
            fields["request_id"] = request_id
        facts = "".join(f" {key}={value}" for key, value in fields.items())
        line = f"{when} {record.levelname:7} {record.name}: {record.getMessage()}{facts}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def worker_flags() -> list[str]:
    """Flags that give a process's records the form of ours."""
    handlers = logging.getLogger().handlers
    json = any(isinstance(handler.formatter, JsonFormatter) for handler in handlers)
    return [WORKER_FLAG] if json else []


def set_up_worker(json: bool) -> None:
    """Sends a server's child process's records to stderr, from WARNING on."""
    handler = logging.StreamHandler()
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(JsonFormatter() if json else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
