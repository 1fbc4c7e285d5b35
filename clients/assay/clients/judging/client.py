"""The clients of a judge service: `AsyncJudgeClient`, and `JudgeClient` without `await`.

    async with AsyncJudgeClient("127.0.0.1:50053") as client:
        item = JudgeItem("What is 6 * 7?", "It is 42.", ground_truth="42")
        [judgement] = await client.judge_responses([item])

`assay.clients.core.client` states the guarantees, and the faults that a client makes itself, here
also SCORE_NOT_FINITE. Items of one prompt travel in one call where they fit, so that the judge
reads the prompt once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.core.client import CallKind, OnError, ServiceClient
from assay.clients.core.messages import Shape
from assay.clients.core.portal import SyncClient
from assay.clients.judging import convert
from assay.clients.judging.rubrics import Ensemble, RubricItem, RubricResult, RubricSettings
from assay.clients.judging.self_verification import dialogue_of, metrics
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
from assay.kit.errors import ConfigError

R = TypeVar("R")
_JUDGE = "assay.api.judge.v1.JudgeService"
_PROCESS = "assay.api.process.v1.ProcessRewardService"


class AsyncJudgeClient(ServiceClient[JudgeServerInfo]):
    """Judges by models. Belongs to the event loop that first uses it.

    Arguments, time-outs and errors are those of `AsyncRewardClient`; the default time-out is 600 s.
    Items without an id are numbered from 0. Every method gives a judgement or a fault for each
    item, in the items' order, and raises CallError where a call failed and on_error is "raise",
    ConfigError for a wrong setting.
    """

    server = "judge service"
    port = 50053
    default_timeout_s = 600.0

    async def judge_responses(
        self,
        items: Iterable[JudgeItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        ensemble: Ensemble | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[JudgeResult]:
        """Judges responses one by one, in as many calls as the server's limits require.

        The models of an `ensemble` each judge every response; the settings then name no model.
        """
        written = convert.write_settings(convert.JUDGE_SETTINGS, settings)
        several = _written(ensemble)
        kind = self._kind(
            f"{_JUDGE}.JudgeResponses",
            convert.JUDGE_ITEM,
            lambda sent: judge_pb2.JudgeResponsesRequest(
                items=sent, settings=written, ensemble=several
            ),
            convert.judge_result,
        )
        return await self._run(kind, list(items), timeout_s, on_error)

    async def judge_rubrics(
        self,
        items: Iterable[RubricItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        rules: RubricSettings = RubricSettings(),  # noqa: B008  # frozen
        *,
        ensemble: Ensemble | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[RubricResult]:
        """Judges responses by rubrics, each criterion a question of its own.

        `rules` says how criteria become one score; the models of an `ensemble` each answer every
        criterion.
        """
        written = convert.write_settings(convert.JUDGE_SETTINGS, settings)
        ruled = convert.write_settings(convert.RUBRIC_SETTINGS, rules)
        several = _written(ensemble)
        kind = self._kind(
            f"{_JUDGE}.JudgeRubrics",
            convert.RUBRIC_ITEM,
            lambda sent: judge_pb2.JudgeRubricsRequest(
                items=sent, settings=written, rubric_settings=ruled, ensemble=several
            ),
            convert.rubric_result,
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

        A pair whose orders differ by more than `max_order_gap` is a fault, ORDER_GAP; None: any gap
        counts. Swapping a and b gives exactly 1 - win_probability where the model is deterministic.
        """
        written = convert.write_settings(convert.JUDGE_SETTINGS, settings)
        kind = self._kind(
            f"{_JUDGE}.JudgePairs",
            convert.PAIR_ITEM,
            lambda sent: judge_pb2.JudgePairsRequest(
                items=sent, settings=written, max_order_gap=max_order_gap
            ),
            convert.pair_result,
        )
        return await self._run(kind, list(items), timeout_s, on_error)

    async def judge_groups(
        self,
        items: Iterable[GroupItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        ranking: RankingMode = "auto",
        rounds: int = 0,
        max_order_gap: float | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[GroupResult]:
        """Ranks the responses of each group.

        `ranking` compares each response with the group's anchor, each with each, or by "swiss" each
        with at most `rounds` others (0: the server's default); "auto" takes the anchor where there
        is one. A comparison whose orders differ by more than `max_order_gap` does not count; None:
        any gap does.
        """
        written = convert.write_settings(convert.JUDGE_SETTINGS, settings)
        mode = convert.ranking_mode(ranking)
        kind = self._kind(
            f"{_JUDGE}.JudgeGroups",
            convert.GROUP_ITEM,
            lambda sent: judge_pb2.JudgeGroupsRequest(
                items=sent,
                settings=written,
                ranking_mode=mode,
                max_order_gap=max_order_gap,
                rounds=rounds,
            ),
            convert.group_result,
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
        """Scores responses by their steps."""
        written = convert.write_settings(convert.STEP_SETTINGS, settings)
        kind = self._kind(
            f"{_PROCESS}.ScoreSteps",
            convert.STEP_ITEM,
            lambda sent: process_pb2.ScoreStepsRequest(items=sent, settings=written),
            convert.step_result,
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
        """Scores dialogues in which the policy verifies itself, with metrics over those scored."""
        written = convert.write_settings(convert.SELF_VERIFICATION_SETTINGS, settings)
        kind = self._kind(
            f"{_PROCESS}.ScoreSelfVerification",
            convert.SELF_VERIFICATION_ITEM,
            lambda sent: process_pb2.ScoreSelfVerificationRequest(items=sent, settings=written),
            convert.self_verification_result,
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
        """Models, templates and limits of the service. Raises CallError after its retries."""
        return await self._refresh_info(timeout_s)

    async def _fetch_info(self, timeout_s: float) -> JudgeServerInfo:
        call = self._transport.call
        judges, processes = await asyncio.gather(
            call(
                f"{_JUDGE}.ListJudgeModels", judge_pb2.ListJudgeModelsRequest(), timeout_s=timeout_s
            ),
            call(
                f"{_PROCESS}.ListProcessModels",
                process_pb2.ListProcessModelsRequest(),
                timeout_s=timeout_s,
            ),
        )
        return convert.server_info(judges, processes)

    def _limits_of(self, info: JudgeServerInfo) -> JudgeServerInfo:
        return info

    def _kind(
        self,
        method: str,
        shape: Shape[Any],
        request: Callable[[list[Any]], Any],
        decode: Callable[[Any, Any], R],
    ) -> CallKind[R]:
        return CallKind(
            method,
            partial(convert.write_item, shape),
            request,
            decode,
            alike=convert.prompt_key,
        )


class JudgeClient(SyncClient[AsyncJudgeClient, JudgeServerInfo]):
    """Judges by models, synchronously, with the methods of `AsyncJudgeClient`.

    Threads may share it; it survives a fork and can be pickled. Its arguments are those of
    `RewardClient`.
    """

    _asynchronous = AsyncJudgeClient

    def judge_responses(
        self,
        items: Iterable[JudgeItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        ensemble: Ensemble | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[JudgeResult]:
        """See `AsyncJudgeClient.judge_responses`."""
        return self._run(
            lambda c: c.judge_responses(
                items, settings, ensemble=ensemble, timeout_s=timeout_s, on_error=on_error
            )
        )

    def judge_rubrics(
        self,
        items: Iterable[RubricItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        rules: RubricSettings = RubricSettings(),  # noqa: B008  # frozen
        *,
        ensemble: Ensemble | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[RubricResult]:
        """See `AsyncJudgeClient.judge_rubrics`."""
        return self._run(
            lambda c: c.judge_rubrics(
                items, settings, rules, ensemble=ensemble, timeout_s=timeout_s, on_error=on_error
            )
        )

    def judge_pairs(
        self,
        items: Iterable[PairItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        max_order_gap: float | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[PairResult]:
        """See `AsyncJudgeClient.judge_pairs`."""
        return self._run(
            lambda c: c.judge_pairs(
                items,
                settings,
                max_order_gap=max_order_gap,
                timeout_s=timeout_s,
                on_error=on_error,
            )
        )

    def judge_groups(
        self,
        items: Iterable[GroupItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        ranking: RankingMode = "auto",
        rounds: int = 0,
        max_order_gap: float | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[GroupResult]:
        """See `AsyncJudgeClient.judge_groups`."""
        return self._run(
            lambda c: c.judge_groups(
                items,
                settings,
                ranking=ranking,
                rounds=rounds,
                max_order_gap=max_order_gap,
                timeout_s=timeout_s,
                on_error=on_error,
            )
        )

    def score_steps(
        self,
        items: Iterable[StepItem],
        settings: StepSettings = StepSettings(),  # noqa: B008  # frozen
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[StepResult]:
        """See `AsyncJudgeClient.score_steps`."""
        return self._run(
            lambda c: c.score_steps(items, settings, timeout_s=timeout_s, on_error=on_error)
        )

    def score_self_verification(
        self,
        items: Iterable[SelfVerificationItem],
        settings: SelfVerificationSettings = SelfVerificationSettings(),  # noqa: B008  # frozen
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> SelfVerificationReport:
        """See `AsyncJudgeClient.score_self_verification`."""
        return self._run(
            lambda c: c.score_self_verification(
                items, settings, timeout_s=timeout_s, on_error=on_error
            )
        )

    def list_models(self, *, timeout_s: float | None = None) -> JudgeServerInfo:
        """See `AsyncJudgeClient.list_models`."""
        return self._run(lambda client: client.list_models(timeout_s=timeout_s))


def _written(ensemble: Ensemble | None) -> judge_pb2.Ensemble | None:
    """The ensemble on the wire.

    Raises:
        ConfigError: it names fewer than two models, or a value does not fit.
    """
    if ensemble is None:
        return None
    if isinstance(ensemble.models, str) or len(ensemble.models) < 2:
        raise ConfigError("Ensemble: models is a list of at least two names")
    message: judge_pb2.Ensemble = convert.write_settings(convert.ENSEMBLE, ensemble)
    return message
