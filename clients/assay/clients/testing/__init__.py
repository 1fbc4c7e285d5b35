"""For tests of other people: a reward server that fails on command, and a kit for verifiers.

`FakeRewardServer` proves that a trainer survives what a server can do to it. `check_verifier` holds
a verifier, over the real wire, to what every verifier promises:

    def test_my_verifier() -> None:
        check_verifier("my-verifier", [Case("4", "4", "correct")]).raise_for_failures()
"""

from assay.clients.core.channel import ScriptedTransport
from assay.clients.testing.cases import Case
from assay.clients.testing.conformance import check_verifier
from assay.clients.testing.fake import (
    FakeRewardServer,
    Judge,
    Knobs,
    exact_info,
    exact_judge,
    result_to_proto,
)
from assay.clients.testing.hostile import hostile_texts
from assay.clients.testing.report import Check, Report

__all__ = [
    "Case",
    "Check",
    "FakeRewardServer",
    "Judge",
    "Knobs",
    "Report",
    "ScriptedTransport",
    "check_verifier",
    "exact_info",
    "exact_judge",
    "hostile_texts",
    "result_to_proto",
]
