"""What the tests of the text verifiers share: judging one response."""

from __future__ import annotations

from assay.reward_server import border
from assay.reward_server.domain import Candidate, JsonValue, Judgement, Verifier, VerifierItem


def item(
    verifier: Verifier,
    response: str,
    *references: str,
    data: JsonValue = None,
    **parameters: object,
) -> VerifierItem:
    """An item for a verifier, its parameters complete."""
    return VerifierItem(
        Candidate(response),
        references=references,
        data=data,
        parameters=verifier.spec.complete(parameters),  # type: ignore[arg-type]
    )


def judge(
    verifier: Verifier,
    response: str,
    *references: str,
    data: JsonValue = None,
    **parameters: object,
) -> Judgement:
    """The judgement on a response, held to the contract by the isolation border.

    Raises:
        Unjudgeable: the item prevents a judgement.
    """
    one = item(verifier, response, *references, data=data, **parameters)
    judgement = verifier.judge(one)
    checked = border.checked(verifier.spec, judgement)
    assert isinstance(checked, Judgement), checked
    return judgement
