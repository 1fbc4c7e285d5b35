"""The reward server as its HTTP faces see it: one scoring path, and the services behind.

A face for it is a `assay.kit.http.faces.Face` whose `routes` take a `RewardFront`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request

from assay.api.reward.v1 import reward_pb2
from assay.clients.execution import AsyncExecutionClient
from assay.clients.judging import AsyncJudgeClient
from assay.clients.sessions import AsyncSessionClient
from assay.kit.calls import add_faults
from assay.kit.errors import refuse
from assay.kit.http.config import HttpConfig
from assay.kit.http.front import Front
from assay.kit.reasons import Reason
from assay.kit.serving import Admission
from assay.reward_server.scorer import RewardScorer


class RewardFront(Front):
    """The reward server as its faces see it.

    Args:
        scorer: does the work.
        admission, config, public: as for `Front`.
        verifier: judges where neither the URL nor the body names a verifier or a task.
        mask_faults: a format that has masked rows answers a fault with one, and not an error.
        sandbox: runs programs; None where the operator named no sandbox.
        sessions: opens sessions in the same.
        genrm: asks judges that are models; None where the operator named none.
        journal: file of the journal that is kept; None for none.
    """

    def __init__(
        self,
        scorer: RewardScorer,
        admission: Admission,
        config: HttpConfig,
        *,
        verifier: str = "",
        mask_faults: bool = False,
        sandbox: AsyncExecutionClient | None = None,
        sessions: AsyncSessionClient | None = None,
        genrm: AsyncJudgeClient | None = None,
        journal: Path | None = None,
        public: bool = False,
    ) -> None:
        super().__init__(admission, config, public=public)
        self.scorer = scorer
        self.verifier = verifier
        self.mask_faults = mask_faults
        self.sandbox = sandbox
        self.sessions = sessions
        self.genrm = genrm
        self.journal = journal

    def chosen(self, request: Request) -> tuple[str, str]:
        """The verifier and the task that the URL names, else the verifier of --http-verifier.

        Raises:
            BadRequestError: UNKNOWN_TASK where nothing says who judges.
        """
        verifier = request.query_params.get("verifier", "")
        task = request.query_params.get("task", "")
        if not verifier and not task:
            verifier = self.verifier
        if not verifier and not task:
            raise refuse(
                Reason.UNKNOWN_TASK,
                "say who judges: ?verifier=NAME or ?task=NAME in the URL, or --http-verifier "
                "of the server; /v1/verifiers lists the names",
            )
        return verifier, task

    async def score(
        self,
        request: Request,
        items: Sequence[reward_pb2.Item],
        timeout_s: float | None = None,
    ) -> Sequence[reward_pb2.Result]:
        """Scores items: a judgement or a fault for each, in order.

        Args:
            request: the call that they came with.
            items: with unique ids.
            timeout_s: seconds until the deadline; None: as the call states.

        Raises:
            CallError: the call as a whole is refused; no item was judged.
        """
        batch = reward_pb2.BatchScoreRequest(items=items)
        if timeout_s is None:
            timeout_s = self.timeout_s(request)
        with self.charged(len(items)):
            response = await self.scorer.batch_score(batch, timeout_s=timeout_s)
        add_faults(response.results)
        return response.results
