"""For your own tests: servers that fail on command, and a conformance kit for verifiers.

`FakeRewardServer` tests a trainer against a server's failures, `FakeSessionServer` an agent loop
without a sandbox. `check_verifier` tests, over the
real wire, the properties that every verifier must have:

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
from assay.clients.testing.sessions import FakeSessionServer, SessionKnobs

__all__ = [
    "Case",
    "Check",
    "FakeRewardServer",
    "FakeSessionServer",
    "Judge",
    "Knobs",
    "Report",
    "ScriptedTransport",
    "SessionKnobs",
    "check_verifier",
    "exact_info",
    "exact_judge",
    "hostile_texts",
    "result_to_proto",
]
