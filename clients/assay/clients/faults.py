"""Faults that a client makes itself, and faults read from the wire. Pure."""

from __future__ import annotations

from google.rpc import status_pb2

from assay.clients.types import Fault
from assay.kit.errors import CallError, code_of, error_info, reason_of, status_code
from assay.kit.reasons import Reason


def make_fault(reason: Reason, message: str) -> Fault:
    """A fault with the gRPC code that the lexicon gives its reason."""
    return Fault(reason=str(reason), message=message, code=code_of(reason).name)


def fault_of_error(error: CallError) -> Fault:
    """The fault of every item of a call that failed as a whole."""
    return Fault(error.reason, str(error), code=error.code.name, metadata=dict(error.metadata))


def fault_from_proto(status: status_pb2.Status) -> Fault:
    """Reads a fault."""
    metadata = dict(error_info(status).metadata)
    return Fault(
        reason_of(status), status.message, code=status_code(status).name, metadata=metadata
    )
