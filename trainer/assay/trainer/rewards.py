"""The reward services as the trainer sees them: samples in, judgements or faults out.

Everything here goes through `assay.clients`; what stands behind it (services of the run's own, a
server elsewhere, or a transport in this process, in tests) does not show.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from assay.clients import Item, Result, RewardClient
from assay.clients.services import EmbeddedServices
from assay.clients.transport import Transport
from assay.rpc.errors import CallError, ConfigError
from assay.trainer.config import RewardConfig
from assay.trainer.data import Problem

_CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One response to be judged.

    Attributes:
        question: the bare question.
        response: the policy's text.
        reference: what it is judged against.
        group: samples of one prompt share it.
        token_count: tokens of the response.
        truncated: the response was cut at max_new_tokens.
    """

    question: str
    response: str
    reference: str | tuple[str, ...]
    group: str = ""
    token_count: int | None = None
    truncated: bool = False


class Judge:
    """Scores samples with one configured verifier."""

    def __init__(self, client: RewardClient, config: RewardConfig) -> None:
        self._client = client
        self._config = config

    def score(self, samples: Sequence[Sample]) -> list[Result]:
        """One judgement or fault per sample, in order; a call that fails faults its samples."""
        return self._client.score([self._item(sample) for sample in samples]) if samples else []

    def _item(self, sample: Sample) -> Item:
        return Item(
            response=sample.response,
            reference=sample.reference,
            verifier=self._config.verifier,
            prompt=sample.question,
            group_id=sample.group,
            parameters=self._config.parameters,
            response_token_count=sample.token_count,
            truncated=sample.truncated,
            timeout_s=self._config.item_timeout_s or None,
        )


@contextmanager
def open_judge(
    config: RewardConfig, transport: Callable[[], Transport] | None = None
) -> Iterator[Judge]:
    """Connects to the reward service for the length of a `with` block.

    Args:
        config: which service and verifier. An empty target starts services that end with the block.
        transport: makes what goes instead of the network.

    Raises:
        ConfigError: nobody answers at the target, or it does not serve the verifier.
        StartupError: the run's own services could not start.
    """
    own = EmbeddedServices() if transport is None and not config.target else None
    with own or nullcontext():
        target = own.address if own else config.target
        with RewardClient(target, timeout_s=config.timeout_s, transport=transport) as client:
            _check(client, config, target)
            yield Judge(client, config)


def _check(client: RewardClient, config: RewardConfig, target: str) -> None:
    """Fails before any training when the service is not there or does not know the verifier."""
    try:
        client.wait_ready(min(_CONNECT_TIMEOUT_S, config.timeout_s))
        served = [verifier.name for verifier in client.list_verifiers().verifiers]
    except CallError as error:
        raise ConfigError(
            f"reward.target: {error}; or leave it empty, and a service is started for the run"
        ) from error
    if config.verifier not in served:
        raise ConfigError(
            f"reward.verifier = {config.verifier!r} is not served at {target}; it serves: "
            f"{', '.join(served)}"
        )


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sample of a step with what came of it."""

    sample: Sample
    result: Result


class RewardFunction:
    """What TRL calls for rewards. Keeps the step's rollouts for the metrics.

    TRL's contract: `f(prompts, completions, completion_ids, **columns) -> list[float | None]`, None
    for "no reward".

    Args:
        judge: who judges.
        problems: that the prompts come from.
        end_token_ids: a response that ends in none of them was cut.

    Attributes:
        rollouts: of the latest call.
        calls: how often it was called.
    """

    __name__ = "assay"

    def __init__(
        self, judge: Judge, problems: Sequence[Problem], *, end_token_ids: Collection[int]
    ) -> None:
        self._judge = judge
        self._problems = {problem.id: problem for problem in problems}
        self._end_token_ids = frozenset(end_token_ids)
        self.rollouts: list[Rollout] = []
        self.calls = 0

    def __call__(
        self,
        prompts: Sequence[str],
        completions: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        *,
        problem_id: Sequence[str],
        **_columns: Any,
    ) -> list[float | None]:
        """The rewards of a step's samples, in order; None for a fault."""
        samples = []
        for id_, text, ids in zip(problem_id, completions, completion_ids, strict=True):
            problem = self._problems[id_]
            truncated = not ids or ids[-1] not in self._end_token_ids
            samples.append(
                Sample(problem.question, text, problem.reference, id_, len(ids), truncated)
            )
        results = self._judge.score(samples)
        self.calls += 1
        self.rollouts = [
            Rollout(sample, result) for sample, result in zip(samples, results, strict=True)
        ]
        return [result.reward for result in results]


class FaultWatch:
    """Says when too many of the latest samples had no judgement.

    The ratio is taken over `window` whole steps even when fewer have been run, so that one bad step
    at the start does not stop a run.
    """

    def __init__(self, *, max_ratio: float, window: int) -> None:
        self._max_ratio = max_ratio
        self._window = window
        self._steps: deque[tuple[int, Counter[str]]] = deque(maxlen=window)

    def add(self, results: Sequence[Result]) -> str | None:
        """Takes in one step's results.

        Returns:
            A line that says what is wrong, when the limit is passed; otherwise None.
        """
        self._steps.append(
            (len(results), Counter(r.fault.reason for r in results if r.fault is not None))
        )
        reasons = sum((faults for _, faults in self._steps), Counter())
        seen = sum(count for count, _ in self._steps)
        capacity = seen * self._window / len(self._steps)
        if not reasons or reasons.total() <= self._max_ratio * capacity:
            return None
        frequent = ", ".join(f"{reason} x{count}" for reason, count in reasons.most_common(3))
        return (
            f"{reasons.total()} of the last {seen} samples had no judgement ({frequent}); "
            f"reward.max_fault_ratio allows {self._max_ratio:g} over {self._window} steps"
        )
