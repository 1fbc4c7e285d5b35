"""The lexicon of fault reasons: statuses, docs/reference/errors.md and clients follow it.

Programs switch on a reason; its message is for people. The set is open: a third party's verifier
may have reasons of its own, and a client treats an unknown one by its gRPC code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import grpc


class Reason(StrEnum):
    """Why there is no judgement. The value travels as google.rpc.ErrorInfo.reason."""

    DEADLINE_REQUIRED = "DEADLINE_REQUIRED"
    MALFORMED_REQUEST = "MALFORMED_REQUEST"
    UNKNOWN_METHOD = "UNKNOWN_METHOD"
    EMPTY_BATCH = "EMPTY_BATCH"
    MISSING_ITEM_ID = "MISSING_ITEM_ID"
    DUPLICATE_ITEM_ID = "DUPLICATE_ITEM_ID"
    BATCH_TOO_LARGE = "BATCH_TOO_LARGE"
    MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    QUEUE_FULL = "QUEUE_FULL"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    STARTING = "STARTING"
    DRAINING = "DRAINING"
    UNREACHABLE = "UNREACHABLE"
    INTERNAL = "INTERNAL"
    UNKNOWN_VERIFIER = "UNKNOWN_VERIFIER"
    UNKNOWN_TASK = "UNKNOWN_TASK"
    MISSING_RESPONSE = "MISSING_RESPONSE"
    MISSING_REFERENCE = "MISSING_REFERENCE"
    UNUSABLE_REFERENCE = "UNUSABLE_REFERENCE"
    UNSUPPORTED_INPUT = "UNSUPPORTED_INPUT"
    INVALID_PARAMETER = "INVALID_PARAMETER"
    INVALID_TIMEOUT = "INVALID_TIMEOUT"
    INVALID_LABEL = "INVALID_LABEL"
    ITEM_TOO_LARGE = "ITEM_TOO_LARGE"
    ITEM_TIMEOUT = "ITEM_TIMEOUT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CANCELLED = "CANCELLED"
    WORKER_DIED = "WORKER_DIED"
    VERIFIER_FAILED = "VERIFIER_FAILED"
    VERIFIER_UNHEALTHY = "VERIFIER_UNHEALTHY"
    MISSING_RESULT = "MISSING_RESULT"
    MALFORMED_ROW = "MALFORMED_ROW"
    UNKNOWN_LANGUAGE = "UNKNOWN_LANGUAGE"
    INVALID_PROGRAM = "INVALID_PROGRAM"
    INVALID_LIMIT = "INVALID_LIMIT"
    INVALID_TEST = "INVALID_TEST"
    UNKNOWN_MODEL = "UNKNOWN_MODEL"
    UNKNOWN_TEMPLATE = "UNKNOWN_TEMPLATE"
    CONTEXT_TOO_LONG = "CONTEXT_TOO_LONG"
    JUDGE_UNPARSED = "JUDGE_UNPARSED"
    LOW_VERDICT_MASS = "LOW_VERDICT_MASS"
    JUDGE_UNFIT = "JUDGE_UNFIT"
    ORDER_GAP = "ORDER_GAP"
    BUDGET_SPENT = "BUDGET_SPENT"
    LETTER_GAP = "LETTER_GAP"
    EVIDENCE_NOT_FOUND = "EVIDENCE_NOT_FOUND"
    NO_QUORUM = "NO_QUORUM"
    ENGINE_DIED = "ENGINE_DIED"
    ENGINE_FAILED = "ENGINE_FAILED"
    SCORE_NOT_FINITE = "SCORE_NOT_FINITE"
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    SESSION_ENDED = "SESSION_ENDED"
    SESSION_LOST = "SESSION_LOST"
    SESSION_BUSY = "SESSION_BUSY"
    SESSIONS_FULL = "SESSIONS_FULL"
    NO_SESSIONS = "NO_SESSIONS"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    WRONG_REPLICA = "WRONG_REPLICA"
    CANNOT_FORK = "CANNOT_FORK"
    TOO_MANY_COPIES = "TOO_MANY_COPIES"
    UNKNOWN_CHECKPOINT = "UNKNOWN_CHECKPOINT"
    CHECKPOINT_LOST = "CHECKPOINT_LOST"
    DISK_FULL = "DISK_FULL"
    ENVIRONMENT_FAILED = "ENVIRONMENT_FAILED"
    EPISODE_CUT = "EPISODE_CUT"


@dataclass(frozen=True, slots=True)
class ReasonInfo:
    """What a reason means and what the caller does about it."""

    code: grpc.StatusCode
    meaning: str
    remedy: str


_BAD = grpc.StatusCode.INVALID_ARGUMENT
_BUSY = grpc.StatusCode.RESOURCE_EXHAUSTED
_GONE = grpc.StatusCode.UNAVAILABLE
_LATE = grpc.StatusCode.DEADLINE_EXCEEDED
_OURS = grpc.StatusCode.INTERNAL
_NOT_NOW = grpc.StatusCode.FAILED_PRECONDITION

LEXICON: dict[Reason, ReasonInfo] = {
    Reason.DEADLINE_REQUIRED: ReasonInfo(
        _BAD, "The call has no deadline.", "Set a time-out on the call."
    ),
    Reason.MALFORMED_REQUEST: ReasonInfo(
        _BAD,
        "The bytes are not a message of this method.",
        "Use the contract of the server's version.",
    ),
    Reason.UNKNOWN_METHOD: ReasonInfo(
        grpc.StatusCode.UNIMPLEMENTED,
        "The server has no such method.",
        "Check the address and the server's version.",
    ),
    Reason.EMPTY_BATCH: ReasonInfo(
        _BAD, "The request holds no items.", "Do not send empty batches."
    ),
    Reason.MISSING_ITEM_ID: ReasonInfo(
        _BAD, "An item has no id, or one over 256 bytes.", "Give each item a short id."
    ),
    Reason.DUPLICATE_ITEM_ID: ReasonInfo(
        _BAD, "Two items share an id.", "Make ids unique within the request."
    ),
    Reason.BATCH_TOO_LARGE: ReasonInfo(
        _BAD, "More items than one request may hold.", "Split, as ListVerifiers says."
    ),
    Reason.MESSAGE_TOO_LARGE: ReasonInfo(
        _BUSY, "A message or a result is past the size limit.", "Split; ask for less output."
    ),
    Reason.UNAUTHENTICATED: ReasonInfo(
        grpc.StatusCode.UNAUTHENTICATED,
        "The token is missing or unknown.",
        "Pass the token that the operator gave you.",
    ),
    Reason.QUEUE_FULL: ReasonInfo(
        _BUSY, "The server's bounded queue is full.", "Wait as RetryInfo says, then retry."
    ),
    Reason.QUOTA_EXCEEDED: ReasonInfo(
        _BUSY,
        "The tenant of the token has as many items or calls as it may.",
        "Wait as RetryInfo says, then retry; ask the operator for more.",
    ),
    Reason.STARTING: ReasonInfo(
        _GONE, "The server is starting; its self-test is not done.", "Retry in a moment."
    ),
    Reason.DRAINING: ReasonInfo(
        _GONE, "The server is shutting down.", "Retry, elsewhere if there is an elsewhere."
    ),
    Reason.UNREACHABLE: ReasonInfo(
        _GONE, "No server answers at the address.", "Check the address; start the server."
    ),
    Reason.INTERNAL: ReasonInfo(_OURS, "A defect of the server.", "Report it with the request id."),
    Reason.UNKNOWN_VERIFIER: ReasonInfo(
        grpc.StatusCode.NOT_FOUND, "No verifier has this name.", "Choose one of `assay verifiers`."
    ),
    Reason.UNKNOWN_TASK: ReasonInfo(
        grpc.StatusCode.NOT_FOUND,
        "No verifier is named, and none serves the task.",
        "Name a verifier or a served task.",
    ),
    Reason.MISSING_RESPONSE: ReasonInfo(
        _BAD, "The item has neither response nor turns.", "Send the policy's text."
    ),
    Reason.MISSING_REFERENCE: ReasonInfo(
        _BAD, "The verifier needs a reference.", "Add the reference to the data row."
    ),
    Reason.UNUSABLE_REFERENCE: ReasonInfo(
        _BAD, "The verifier cannot read the reference.", "Correct the data row."
    ),
    Reason.UNSUPPORTED_INPUT: ReasonInfo(
        _BAD, "The verifier does not take this kind of candidate.", "Send what it takes."
    ),
    Reason.INVALID_PARAMETER: ReasonInfo(
        _BAD, "A parameter is unknown, or of a wrong type or range.", "Correct it."
    ),
    Reason.INVALID_TIMEOUT: ReasonInfo(
        _BAD, "The item's time-out is not positive, or above the limit.", "Lower it."
    ),
    Reason.INVALID_LABEL: ReasonInfo(
        _BAD,
        "The item has too many labels, or one with a wrong name or a long value.",
        "Correct it as the message says; labels are never judged by.",
    ),
    Reason.ITEM_TOO_LARGE: ReasonInfo(
        _BAD, "The item is longer than the server takes.", "Shorten the item."
    ),
    Reason.ITEM_TIMEOUT: ReasonInfo(
        _LATE, "The verifier did not finish in the item's time-out.", "Drop the sample."
    ),
    Reason.DEADLINE_EXCEEDED: ReasonInfo(
        _LATE, "The call's deadline came first.", "Allow more time or send less."
    ),
    Reason.CANCELLED: ReasonInfo(grpc.StatusCode.CANCELLED, "The caller gave up.", "Nothing."),
    Reason.WORKER_DIED: ReasonInfo(
        _OURS, "The process that did the work died.", "Drop the sample; look at the log."
    ),
    Reason.VERIFIER_FAILED: ReasonInfo(
        _OURS, "The verifier raised an exception.", "Drop the sample; report it."
    ),
    Reason.VERIFIER_UNHEALTHY: ReasonInfo(
        _GONE, "The verifier failed its self-test.", "Look at the server's log."
    ),
    Reason.MISSING_RESULT: ReasonInfo(
        _OURS, "The server answered without this item.", "Report it with the request id."
    ),
    Reason.MALFORMED_ROW: ReasonInfo(
        _BAD, "A row of a file holds no item (said by a command, not by a server).", "Correct it."
    ),
    Reason.UNKNOWN_LANGUAGE: ReasonInfo(
        grpc.StatusCode.NOT_FOUND,
        "The sandbox does not serve the language.",
        "Install the package that the message names.",
    ),
    Reason.INVALID_PROGRAM: ReasonInfo(
        _BAD, "A path or an entry point of the program is wrong.", "Correct the program."
    ),
    Reason.INVALID_LIMIT: ReasonInfo(
        _BAD, "A limit is above what the sandbox allows.", "Lower it; it is never clipped."
    ),
    Reason.INVALID_TEST: ReasonInfo(_BAD, "The tests cannot be run.", "Correct the data row."),
    Reason.UNKNOWN_MODEL: ReasonInfo(
        grpc.StatusCode.NOT_FOUND, "No model has this name.", "Choose one that the service lists."
    ),
    Reason.UNKNOWN_TEMPLATE: ReasonInfo(
        grpc.StatusCode.NOT_FOUND,
        "No prompt template has this name.",
        "Choose one that the service lists.",
    ),
    Reason.CONTEXT_TOO_LONG: ReasonInfo(
        _BAD,
        "The candidate does not fit into the model's context.",
        "Shorten it, or allow it to be cut.",
    ),
    Reason.JUDGE_UNPARSED: ReasonInfo(
        _OURS,
        "No verdict can be read in what the judge wrote.",
        "Drop the sample; look at the raw text.",
    ),
    Reason.LOW_VERDICT_MASS: ReasonInfo(
        _OURS,
        "The verdicts hold too little of the model's probability: it would say something else.",
        "Drop the sample; ask by votes, or choose another model or template.",
    ),
    Reason.JUDGE_UNFIT: ReasonInfo(
        grpc.StatusCode.FAILED_PRECONDITION,
        "By this template the model does not tell known right answers from wrong ones.",
        "Choose another model or template.",
    ),
    Reason.ORDER_GAP: ReasonInfo(
        grpc.StatusCode.FAILED_PRECONDITION,
        "The judge's two orders differ by more than is allowed.",
        "Drop the sample.",
    ),
    Reason.BUDGET_SPENT: ReasonInfo(
        grpc.StatusCode.FAILED_PRECONDITION,
        "The tenant or the run has spent what its judges may cost.",
        "Ask the operator for more; nothing is asked of the model before.",
    ),
    Reason.LETTER_GAP: ReasonInfo(
        grpc.StatusCode.FAILED_PRECONDITION,
        "The verdict moves with the letters that stand for it by more than is allowed.",
        "Drop the sample; where it is frequent, choose another model.",
    ),
    Reason.EVIDENCE_NOT_FOUND: ReasonInfo(
        _OURS,
        "The judge called a criterion met by words that are not in the response.",
        "Drop the sample, leave the criterion out, or choose another model.",
    ),
    Reason.NO_QUORUM: ReasonInfo(
        _OURS,
        "Too few models of an ensemble judged, or as many for as against.",
        "Drop the sample; look at the models' own faults.",
    ),
    Reason.ENGINE_DIED: ReasonInfo(
        _OURS, "The engine that ran the model died.", "Drop the sample; look at the log."
    ),
    Reason.ENGINE_FAILED: ReasonInfo(
        _OURS,
        "The engine refused the request, or answered what makes no sense.",
        "Drop the sample; look at the message.",
    ),
    Reason.SCORE_NOT_FINITE: ReasonInfo(
        _OURS,
        "The model's numbers are not finite.",
        "Drop the sample; look at the model's weights and precision.",
    ),
    Reason.SESSION_NOT_FOUND: ReasonInfo(
        grpc.StatusCode.NOT_FOUND,
        "No session has this id: it was closed, or is another tenant's.",
        "Open one, and keep its id.",
    ),
    Reason.SESSION_ENDED: ReasonInfo(
        _NOT_NOW,
        "The program ended its session earlier; it is no fault.",
        "Judge it by that, roll back, or open another.",
    ),
    Reason.SESSION_LOST: ReasonInfo(
        grpc.StatusCode.DATA_LOSS,
        "A session was lost by our doing: its process, its host or its server ended.",
        "Drop the sample; open another.",
    ),
    Reason.SESSION_BUSY: ReasonInfo(
        grpc.StatusCode.ABORTED,
        "The session does something else; nothing was done.",
        "Wait for the other call, then repeat.",
    ),
    Reason.SESSIONS_FULL: ReasonInfo(
        _BUSY, "As many sessions are open as fit.", "Wait as RetryInfo says, then retry."
    ),
    Reason.NO_SESSIONS: ReasonInfo(
        grpc.StatusCode.UNIMPLEMENTED,
        "The server keeps no sessions: its walls, its back end or its operator do not allow it.",
        "Read the message; programs run there all the same.",
    ),
    Reason.LEASE_EXPIRED: ReasonInfo(
        _NOT_NOW,
        "The session's lease ran out before anybody renewed it.",
        "Renew in time, or ask for a longer lease.",
    ),
    Reason.WRONG_REPLICA: ReasonInfo(
        _NOT_NOW,
        "Another replica holds the session; nothing was done.",
        'Send the session\'s replica in the metadata "assay-replica".',
    ),
    Reason.CANNOT_FORK: ReasonInfo(
        _NOT_NOW,
        "The session holds what no copy can: threads, child processes, sockets and the like.",
        "End what the metadata names, then ask again.",
    ),
    Reason.TOO_MANY_COPIES: ReasonInfo(
        _NOT_NOW,
        "The session has as many checkpoints and forks as it may.",
        "Drop checkpoints or close forks.",
    ),
    Reason.UNKNOWN_CHECKPOINT: ReasonInfo(
        grpc.StatusCode.NOT_FOUND,
        "The session has no such checkpoint.",
        "Use one that it made and did not drop.",
    ),
    Reason.CHECKPOINT_LOST: ReasonInfo(
        _NOT_NOW,
        "The checkpoint is gone, the session goes on. Cause memory-limit is the program's doing, "
        "killed-from-outside a fault.",
        "Go on without it; drop the sample where it was a fault.",
    ),
    Reason.DISK_FULL: ReasonInfo(
        _NOT_NOW,
        "The session's disk has no room for the file.",
        "Remove files, or ask for a larger disk.",
    ),
    Reason.ENVIRONMENT_FAILED: ReasonInfo(
        _OURS,
        "An environment raised what it may not, or gave what is no observation and no reward.",
        "Drop the episode; correct the environment.",
    ),
    Reason.EPISODE_CUT: ReasonInfo(
        _LATE,
        "An episode was cut off by its seconds, or with its run: its reward would say nothing.",
        "Drop the episode; allow more with method.episodes.seconds.",
    ),
}
