"""The synchronous judging client: an `AsyncJudgeClient` on an event loop in a thread."""

from __future__ import annotations

from collections.abc import Iterable

from assay.clients.client import OnError
from assay.clients.config import ClientConfig
from assay.clients.judging.client import TIMEOUT_S, AsyncJudgeClient, check_judge_client
from assay.clients.judging.transport import BlockingJudgeTransport
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
    SelfVerificationSettings,
    StepItem,
    StepResult,
    StepSettings,
)
from assay.clients.portal import SyncClient
from assay.rpc.tls import ClientTls


class JudgeClient(SyncClient[AsyncJudgeClient]):
    """Judges by models, synchronously. The methods are those of `AsyncJudgeClient`.

    Args:
        target: the server's address, "host:port".
        tls: encrypts, and says whom to trust. None: plain text, for loopback.
        token: the bearer token that the operator gave you.
        timeout_s: the whole time that a call may take, queue and retries included, in seconds.
        config: batching and retries.

    Raises:
        ConfigError: No target is given, or the time-out is not positive.
    """

    def __init__(
        self,
        target: str,
        *,
        tls: ClientTls | None = None,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        config: ClientConfig | None = None,
    ) -> None:
        check_judge_client(target, None, timeout_s)
        self.target = target
        self.timeout_s = timeout_s
        self._tls = tls
        self._token = token
        self._config = config or ClientConfig()
        self._start()

    def judge_responses(
        self,
        items: Iterable[JudgeItem],
        settings: JudgeSettings = JudgeSettings(),  # noqa: B008  # frozen
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[JudgeResult]:
        """Judges responses one by one; see `AsyncJudgeClient.judge_responses`."""
        portal = self._open()
        return portal.run(
            portal.client.judge_responses(items, settings, timeout_s=timeout_s, on_error=on_error)
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
        """Judges pairs in both orders; see `AsyncJudgeClient.judge_pairs`."""
        portal = self._open()
        return portal.run(
            portal.client.judge_pairs(
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
        max_order_gap: float | None = None,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> list[GroupResult]:
        """Ranks the responses of each group; see `AsyncJudgeClient.judge_groups`."""
        portal = self._open()
        return portal.run(
            portal.client.judge_groups(
                items,
                settings,
                ranking=ranking,
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
        """Scores responses by their steps; see `AsyncJudgeClient.score_steps`."""
        portal = self._open()
        return portal.run(
            portal.client.score_steps(items, settings, timeout_s=timeout_s, on_error=on_error)
        )

    def score_self_verification(
        self,
        items: Iterable[SelfVerificationItem],
        settings: SelfVerificationSettings = SelfVerificationSettings(),  # noqa: B008  # frozen
        *,
        timeout_s: float | None = None,
        on_error: OnError = "fault",
    ) -> SelfVerificationReport:
        """Scores dialogues; see `AsyncJudgeClient.score_self_verification`."""
        portal = self._open()
        return portal.run(
            portal.client.score_self_verification(
                items, settings, timeout_s=timeout_s, on_error=on_error
            )
        )

    def list_models(self, *, timeout_s: float | None = None) -> JudgeServerInfo:
        """Asks which models and prompts are served; see `AsyncJudgeClient.list_models`."""
        portal = self._open()
        return portal.run(portal.client.list_models(timeout_s=timeout_s))

    def wait_ready(self, timeout_s: float = 60.0) -> JudgeServerInfo:
        """Waits until the service answers; see `AsyncJudgeClient.wait_ready`."""
        portal = self._open()
        return portal.run(portal.client.wait_ready(timeout_s))

    def _make_client(self) -> AsyncJudgeClient:
        wire = BlockingJudgeTransport(self.target, tls=self._tls, token=self._token)
        return AsyncJudgeClient(
            self.target, timeout_s=self.timeout_s, config=self._config, transport=wire
        )
