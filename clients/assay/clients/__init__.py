r"""The Python client of Assay: score model responses on a reward server, from any trainer.

from assay.clients import Item, RewardClient

with RewardClient("127.0.0.1:50051") as client:
    for result in client.score([Item("\\boxed{4}", reference="4", task="math")]):
        print(result.reward, result.outcome)
"""

from assay.clients.config import ClientConfig, RetryPolicy
from assay.clients.core.channel import GrpcTransport, LocalTransport, Transport
from assay.clients.reward import AsyncRewardClient, RewardClient
from assay.clients.services import EmbeddedServices
from assay.clients.types import (
    Anchor,
    Appeal,
    Component,
    Data,
    Fault,
    Hearing,
    Item,
    Judgement,
    ParameterInfo,
    Result,
    ServerInfo,
    ServerLimits,
    Span,
    ToolCall,
    Turn,
    VerifierInfo,
    tool_calls_of,
)
from assay.kit.tls import ClientTls

__all__ = [
    "Anchor",
    "Appeal",
    "AsyncRewardClient",
    "ClientConfig",
    "ClientTls",
    "Component",
    "Data",
    "EmbeddedServices",
    "Fault",
    "GrpcTransport",
    "Hearing",
    "Item",
    "Judgement",
    "LocalTransport",
    "ParameterInfo",
    "Result",
    "RetryPolicy",
    "RewardClient",
    "ServerInfo",
    "ServerLimits",
    "Span",
    "ToolCall",
    "Transport",
    "Turn",
    "VerifierInfo",
    "tool_calls_of",
]
