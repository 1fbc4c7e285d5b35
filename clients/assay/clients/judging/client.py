"""The asynchronous client of a judge service: batches, splits, retries, deadlines; any transport.

    async with AsyncJudgeClient("127.0.0.1:50053") as client:
        item = JudgeItem("What is 6 * 7?", "It is 42.", ground_truth="42")
        [judgement] = await client.judge_responses([item])

What holds, whatever happens on the way: every item gets exactly one outcome, in the items' order;
an outcome is matched to its item by id; a judgement is never made up. Items of one prompt travel in
one call where they fit, so that the judge reads the prompt once. The reasons for a fault that the
client itself finds are those of `assay.clients.client`, and SCORE_NOT_FINITE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.calls import BatchClient, CallKind
from assay.clients.client import OnError
from assay.clients.config import ClientConfig
from assay.clients.judging import convert, reading
from assay.clients.judging.transport import GrpcJudgeTransport, JudgeTransport, Method
from assay.clients.judging.types import (
    GroupItem,
    GroupResult,
    JudgeItem,
    JudgeResult,
    JudgeServerInfo,
    JudgeSettings,
    PairItem,
    PairResult,
    RankingMode,
    SelfVerificationItem,
    SelfVerificationReport,
    SelfVerificationScores,
    SelfVerificationSettings,
    StepItem,
    StepResult,
    StepSettings,
)
from assay.clients.life import check_timeout
from assay.clients.self_verification import dialogue_of, metrics
from assay.rpc.errors import ConfigError
from assay.rpc.tls import ClientTls

R = TypeVar("R")
TIMEOUT_S = 600.0
"""Models are slow: the time that a call may take where nobody says."""


class AsyncJudgeClient(BatchClient[JudgeTransport, JudgeServerInfo]):
    """Judges by models. Belongs to the event loop that first uses it.

    Args:
        target: the server's address, "host:port".
        tls: encrypts, and says whom to trust. None: plain text, for loopback.
        token: the bearer token that the operator gave you.
        timeout_s: the whole time that a call may take, queue and retries included, in seconds.
        config: batching and retries.
        transport: what carries messages instead of gRPC; then `target` only names it in errors.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """

    def __init__(
        self,
        target: str = "",
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        config: ClientConfig | None = None,
        transport: JudgeTransport | None = None,
    ) -> None:
        check_judge_client(target, transport, timeout_s)
        super().__init__(
            transport or GrpcJudgeTransport(target, tls=tls, token=token),
            target=target,
            server="the judge service",
            noun="item",
            timeout_s=timeout_s,
            config=config,
        )

    async def judge_responses(
        self,
        items: Iterable[JudgeItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[JudgeResult]:
        """Judges responses one by one, in as many calls as the server's limits ask for.

        Args:
            items: what to judge. Those without an id are numbered from 0.
            settings: how to judge.
            timeout_s: the whole time this may take, in seconds. None: the client's.
            on_error: what becomes of a call that failed after its retries: a fault of each of its
                items, or an exception.

        Returns:
            A judgement or a fault for each item, in the items' order.

        Raises:
            BadRequestError: Ids are not unique, or too long.
            CallError: A call failed, and on_error is "raise".
            ConfigError: A setting is wrong, or the client is closed or belongs to another event
                loop.
        """
        told = convert.judge_settings(settings)
        kind = self._kind(
            "JudgeResponses",
            convert.judge_item,
            lambda sent: judge_pb2.JudgeResponsesRequest(items=sent, settings=told),
            reading.judge_result,
        )
        return await self._run(kind, list(items), timeout_s, on_error)

    async def judge_pairs(
        self,
        items: Iterable[PairItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        max_order_gap: float | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[PairResult]:
        """Judges pairs, each in both orders.

        Args:
            items: what to judge. Those without an id are numbered from 0.
            settings: how to judge.
            max_order_gap: a pair whose orders differ by more is a fault, ORDER_GAP. None: any gap
                counts.
            timeout_s: the whole time this may take, in seconds. None: the client's.
            on_error: as for `judge_responses`.

        Returns:
            A judgement or a fault for each pair, in the pairs' order. Swapping a and b gives
            exactly 1 - win_probability where the model is deterministic.

        Raises: as `judge_responses`.
        """
        told = convert.judge_settings(settings)
        kind = self._kind(
            "JudgePairs",
            convert.pair_item,
            lambda sent: judge_pb2.JudgePairsRequest(
                items=sent, settings=told, max_order_gap=max_order_gap
            ),
            reading.pair_result,
        )
        return await self._run(kind, list(items), timeout_s, on_error)

    async def judge_groups(
        self,
        items: Iterable[GroupItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        ranking: RankingMode = "auto",
        max_order_gap: float | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[GroupResult]:
        """Ranks the responses of each group.

        Args:
            items: the groups. Those without an id are numbered from 0.
            settings: how to judge.
            ranking: against the group's anchor, each against each, or, "auto", the former where
                there is an anchor.
            max_order_gap: a comparison whose orders differ by more makes its group a fault,
                ORDER_GAP. None: any gap counts.
            timeout_s: the whole time this may take, in seconds. None: the client's.
            on_error: as for `judge_responses`.

        Returns:
            A ranking or a fault for each group, in the groups' order.

        Raises: as `judge_responses`.
        """
        told, mode = convert.judge_settings(settings), convert.ranking_mode(ranking)
        kind = self._kind(
            "JudgeGroups",
            convert.group_item,
            lambda sent: judge_pb2.JudgeGroupsRequest(
                items=sent, settings=told, ranking_mode=mode, max_order_gap=max_order_gap
            ),
            reading.group_result,
        )
        return await self._run(kind, list(items), timeout_s, on_error)

    async def score_steps(
        self,
        items: Iterable[StepItem],
        settings: StepSettings = StepSettings(),  # noqa: B008  # frozen
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[StepResult]:
        """Scores responses by their steps; arguments, errors and order as `judge_responses`."""
        told = convert.step_settings(settings)
        kind = self._kind(
            "ScoreSteps",
            convert.step_item,
            lambda sent: process_pb2.ScoreStepsRequest(items=sent, settings=told),
            reading.step_result,
        )
        return await self._run(kind, list(items), timeout_s, on_error)

    async def score_self_verification(
        self,
        items: Iterable[SelfVerificationItem],
        settings: SelfVerificationSettings = SelfVerificationSettings(),  # noqa: B008  # frozen
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> SelfVerificationReport:
        """Scores dialogues in which the policy verifies itself.

        Args, errors: as `judge_responses`.

        Returns:
            Scores or a fault for each dialogue, in the dialogues' order, and the metrics over those
            that were scored.
        """
        told = convert.self_verification_settings(settings)
        kind = self._kind(
            "ScoreSelfVerification",
            convert.self_verification_item,
            lambda sent: process_pb2.ScoreSelfVerificationRequest(items=sent, settings=told),
            reading.self_verification_result,
        )
        batch = list(items)
        results = await self._run(kind, batch, timeout_s, on_error)
        dialogues = (
            dialogue_of(item.turns, result.turns, settings.parsing, item.group_id)
            for item, result in zip(batch, results, strict=True)
            if isinstance(result, SelfVerificationScores)
        )
        return SelfVerificationReport(results, metrics(dialogues))

    async def list_models(self, *, timeout_s: float | None = None) -> JudgeServerInfo:
        """Asks which models and prompts are served, and the limits.

        Raises:
            CallError: The call failed after its retries.
            ConfigError: The client is closed, or belongs to another event loop.
        """
        return await self._refresh_info(timeout_s)

    async def _fetch_info(self, timeout_s: float) -> JudgeServerInfo:
        call = self._transport.call
        judges, processes = await asyncio.gather(
            call("ListJudgeModels", judge_pb2.ListJudgeModelsRequest(), timeout_s=timeout_s),
            call("ListProcessModels", process_pb2.ListProcessModelsRequest(), timeout_s=timeout_s),
        )
        return reading.server_info(judges, processes)

    def _kind(
        self,
        method: Method,
        encode: Callable[[Any, str], Any],
        request: Callable[[list[Any]], Any],
        decode: Callable[[Any, Any], R],
    ) -> CallKind[R]:
        wire = self._transport
        return CallKind(
            encode,
            request,
            lambda message, timeout_s: wire.call(method, message, timeout_s=timeout_s),
            decode,
            convert.prompt_key,
        )


def check_judge_client(target: str, transport: object, timeout_s: float) -> None:
    """Checks what a client, awaited or not, is made with.

    Raises:
        ConfigError: Neither target nor transport is given, or the time-out is not positive.
    """
    if not target and transport is None:
        raise ConfigError("no address of a judge service; pass one, such as '127.0.0.1:50053'")
    check_timeout(timeout_s)
