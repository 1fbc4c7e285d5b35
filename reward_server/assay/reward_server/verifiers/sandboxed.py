"""Verifiers that run something in the sandbox."""

from __future__ import annotations

from collections.abc import Callable

from assay.clients.execution import AsyncExecutionClient
from assay.reward_server.domain import Verifier
from assay.reward_server.verifiers.code import CodeVerifier
from assay.reward_server.verifiers.proof import ProofVerifier
from assay.reward_server.verifiers.sql import SqlVerifier
from assay.reward_server.verifiers.verilog import VerilogVerifier

VERIFIERS: tuple[Callable[[AsyncExecutionClient], Verifier], ...] = (
    CodeVerifier,
    SqlVerifier,
    ProofVerifier,
    VerilogVerifier,
)
"""All of them; each is made with the client that reaches the sandbox, and closes it."""
