"""What a model can do against what was asked of it, and what an item must hold."""

from __future__ import annotations

from collections.abc import Sequence

from assay.clients.judging.types import ScoringMode
from assay.genrm.domain import ResolvedJudgeSettings, Said
from assay.genrm.engines.base import Capability, ModelInfo
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

NEEDS: dict[ScoringMode, Capability] = {
    "token-probability": "choose",
    "scalar-head": "rate",
    "votes": "write",
    "consensus": "write",
}

MAX_TURNS = 256


def resolve_mode(
    settings: ResolvedJudgeSettings, model: ModelInfo, allowed: Sequence[ScoringMode]
) -> ScoringMode:
    """How the verdict becomes a number; `allowed` are the modes of this call.

    "auto" is the first that the model can do of verdict-token probabilities, scalar head, votes.

    Raises:
        Unjudgeable: INVALID_PARAMETER, the model or the call cannot do it.
    """
    if settings.scoring == "auto":
        for mode in ("token-probability", "scalar-head", "votes"):
            if NEEDS[mode] in model.capabilities:
                return mode
        able = ", ".join(sorted(model.capabilities)) or "nothing"
        raise invalid(f"model {model.name} cannot judge: it answers {able}; choose another model")
    if settings.scoring not in allowed:
        raise invalid(f"{settings.scoring} is for single responses; choose {', '.join(allowed)}")
    if NEEDS[settings.scoring] not in model.capabilities:
        raise invalid(
            f"model {model.name} cannot be scored by {settings.scoring}: it does not answer "
            f"{NEEDS[settings.scoring]!r} requests; leave the mode open, or choose another model"
        )
    return settings.scoring


def require_text(text: str, what: str) -> None:
    """Refuses a blank response.

    Raises:
        Unjudgeable: MISSING_RESPONSE.
    """
    if not text.strip():
        raise Unjudgeable(
            Reason.MISSING_RESPONSE, f"{what} is empty; there is nothing for a judge to read"
        )


def require_said(said: Said, what: str) -> None:
    """Refuses what holds nothing of the candidate's to judge.

    Raises:
        Unjudgeable: MISSING_RESPONSE; INVALID_PARAMETER, a trajectory of too many turns.
    """
    if isinstance(said, str):
        require_text(said, what)
        return
    if len(said) > MAX_TURNS:
        raise invalid(f"{what} has {len(said)} turns; at most {MAX_TURNS} are judged")
    own = [turn for turn in said if turn.role == "assistant"]
    if not any(turn.calls or turn.content.strip() for turn in own):
        raise Unjudgeable(
            Reason.MISSING_RESPONSE,
            f"{what} holds no turn in which the assistant says or calls anything",
        )


def one_text(said: Said, reader: str) -> str:
    """The one text of a response.

    Raises:
        Unjudgeable: INVALID_PARAMETER: it is a trajectory.
    """
    if isinstance(said, str):
        return said
    raise invalid(f"{reader} reads one response, not a trajectory; choose another way of judging")


def require_reference(text: str | None, what: str) -> None:
    """Refuses a blank reference; None is no reference, which is fine.

    Raises:
        Unjudgeable: MISSING_REFERENCE.
    """
    if text is not None and not text.strip():
        raise Unjudgeable(
            Reason.MISSING_REFERENCE, f"the {what} is empty; correct the data row, or leave it out"
        )


def invalid(message: str) -> Unjudgeable:
    """A fault of the caller's settings."""
    return Unjudgeable(Reason.INVALID_PARAMETER, message)
