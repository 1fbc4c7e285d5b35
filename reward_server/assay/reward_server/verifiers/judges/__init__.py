"""Judges that are models: an item goes to genrm, an opinion comes back and becomes a reward."""

from __future__ import annotations

from collections.abc import Callable

from assay.clients.judging import AsyncJudgeClient
from assay.reward_server.domain import Verifier
from assay.reward_server.verifiers.judges.classes import AttemptVerifier, RefusalVerifier
from assay.reward_server.verifiers.judges.group import GroupVerifier
from assay.reward_server.verifiers.judges.pairwise import PairwiseVerifier
from assay.reward_server.verifiers.judges.pointwise import JudgeVerifier
from assay.reward_server.verifiers.judges.rubric import RubricVerifier
from assay.reward_server.verifiers.judges.scalar import RewardModelVerifier
from assay.reward_server.verifiers.judges.steps import StepVerifier

VERIFIERS: tuple[Callable[[AsyncJudgeClient], Verifier], ...] = (
    JudgeVerifier,
    AttemptVerifier,
    RefusalVerifier,
    PairwiseVerifier,
    GroupVerifier,
    RubricVerifier,
    RewardModelVerifier,
    StepVerifier,
)
"""All of them; each is made with the client that reaches genrm, and closes it."""
