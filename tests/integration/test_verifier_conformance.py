"""Every verifier of ours passes the conformance kit that third parties run, over the real wire.

The cases are the verifiers' own examples, so a new verifier is covered when it is registered. One
server without a cache serves them all; hostile responses are of 16 KiB here and of 1 MiB in the
slow test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.clients import Data, EmbeddedServices, RewardClient, Turn
from assay.clients.testing import Case, check_verifier
from assay.clients.types import Reference
from assay.reward_server.domain import Verifier, VerifierExample, VerifierItem
from assay.reward_server.registry import load_registry

VERIFIERS = {verifier.spec.name: verifier for verifier in load_registry()}
ITEM_TIMEOUT_S = 10.0
# An inline verifier holds up everybody else while it judges.
INLINE_TIMEOUT_S = 0.5
# Their time is another library's: hostile text ends in the fault of a killed worker, which
# tests/faults/test_math_verify_hostile.py holds them to, and the kit takes for a failure.
UNBOUNDED = {"math-verify"}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServices]:
    with EmbeddedServices(["reward"], arguments={"reward": ["--cache-entries", "0"]}) as services:
        yield services


def cases_of(verifier: Verifier) -> list[Case]:
    """A verifier's own examples as cases."""
    return [_case(example) for example in verifier.examples]


def _case(example: VerifierExample) -> Case:
    item = example.item
    said = item.candidate.turns
    return Case(
        item.candidate.text or "",
        _reference(item),
        example.verdict,
        parameters=item.parameters,
        prompt=[{"role": m.role, "content": m.content} for m in item.prompt],
        response_token_count=item.response_token_count,
        truncated=item.truncated,
        turns=[Turn(turn.role, turn.content, turn.from_policy) for turn in said],
        name=" / ".join(turn.content for turn in said),
    )


def _reference(item: VerifierItem) -> Reference | None:
    if item.data is not None:
        return Data(item.data)
    if len(item.references) == 1:
        return item.references[0]
    return item.references or None


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(VERIFIERS.keys() - UNBOUNDED))
def test_our_verifiers_pass_the_kit(name: str, server: EmbeddedServices) -> None:
    check_verifier(
        name,
        cases_of(VERIFIERS[name]),
        target=server.address,
        item_timeout_s=ITEM_TIMEOUT_S,
        hostile_chars=2**14,
    ).raise_for_failures()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(VERIFIERS.keys() - UNBOUNDED))
def test_our_verifiers_stand_a_megabyte_of_hostile_text(
    name: str, server: EmbeddedServices
) -> None:
    inline = VERIFIERS[name].spec.isolation == "inline"
    check_verifier(
        name,
        cases_of(VERIFIERS[name])[:1],
        target=server.address,
        item_timeout_s=INLINE_TIMEOUT_S if inline else ITEM_TIMEOUT_S,
        hostile_chars=2**20,
    ).raise_for_failures()


def test_profiles_keep_what_verifiers_promise(server: EmbeddedServices) -> None:
    with RewardClient(server.address) as client:
        profiles = [info for info in client.list_verifiers().verifiers if info.is_profile]
    # What decides in `code-prm` asks a sandbox, and none is there: it has no verdicts to promise.
    assert {info.name for info in profiles if not info.verdicts} == {"code-prm"}
    for name in (info.name for info in profiles if info.verdicts):
        check_verifier(name, target=server.address, hostile_chars=2**12).raise_for_failures()


def test_every_verifier_that_is_served_is_checked(server: EmbeddedServices) -> None:
    with RewardClient(server.address) as client:
        served = {info.name for info in client.list_verifiers().verifiers if not info.is_profile}
    assert served == set(VERIFIERS)
