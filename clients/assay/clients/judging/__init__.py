"""The client of a judge service: responses, pairs, groups and steps, judged by models.

from assay.clients.judging import JudgeClient, JudgeItem

with JudgeClient("127.0.0.1:50053") as client:
    [result] = client.judge_responses([JudgeItem("6 * 7?", "42.", ground_truth="42")])
print(result)
"""

from assay.clients.judging.client import AsyncJudgeClient
from assay.clients.judging.sync import JudgeClient
from assay.clients.judging.transport import GrpcJudgeTransport, JudgeTransport
from assay.clients.judging.types import (
    Aggregation,
    GroupItem,
    GroupRanking,
    GroupResult,
    JudgeItem,
    JudgeModelInfo,
    JudgeRef,
    JudgeResult,
    JudgeServerInfo,
    JudgeSettings,
    ModelJudgement,
    Overflow,
    PairItem,
    PairJudgement,
    PairResult,
    ProcessModelInfo,
    Prompt,
    RankingMode,
    ScoringMode,
    SelfVerificationItem,
    SelfVerificationReport,
    SelfVerificationResult,
    SelfVerificationScores,
    SelfVerificationSettings,
    Splitting,
    StepItem,
    StepResult,
    StepScore,
    StepScores,
    StepSettings,
    TemplateInfo,
    Timings,
    Usage,
    Vote,
)
from assay.clients.self_verification import SelfVerificationMetrics, TurnScore
from assay.clients.types import Fault

__all__ = [
    "Aggregation",
    "AsyncJudgeClient",
    "Fault",
    "GroupItem",
    "GroupRanking",
    "GroupResult",
    "GrpcJudgeTransport",
    "JudgeClient",
    "JudgeItem",
    "JudgeModelInfo",
    "JudgeRef",
    "JudgeResult",
    "JudgeServerInfo",
    "JudgeSettings",
    "JudgeTransport",
    "ModelJudgement",
    "Overflow",
    "PairItem",
    "PairJudgement",
    "PairResult",
    "ProcessModelInfo",
    "Prompt",
    "RankingMode",
    "ScoringMode",
    "SelfVerificationItem",
    "SelfVerificationMetrics",
    "SelfVerificationReport",
    "SelfVerificationResult",
    "SelfVerificationScores",
    "SelfVerificationSettings",
    "Splitting",
    "StepItem",
    "StepResult",
    "StepScore",
    "StepScores",
    "StepSettings",
    "TemplateInfo",
    "Timings",
    "TurnScore",
    "Usage",
    "Vote",
]
