"""What a round of scoring costs the trainer: CPU from the first submission to the last result.

The judge is a function in this process that takes no time, so that what is measured is the client,
its thread and its messages. `at once` submits 256 responses together; `as they end` in 20 portions,
5 ms apart, as generation does; `one call` is `RewardClient.score` on the same items.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from experiments.miniature import Service

from assay.clients.config import ClientConfig
from assay.trainer.core.rewards import Judge, sample_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.rollouts.scoring import BackgroundClient
from assay.trainer.settings.sections import RewardConfig

PROMPTS, GROUP, PORTIONS, ROUNDS = 32, 8, 20, 30


def run() -> None:
    """Prints medians over `ROUNDS`, the ways by turns."""
    problem = Problem("p", "3+4=", (("user", "3+4="),), "7")
    requests = [Request(Draw(n, problem, (1, 2)), i) for n in range(PROMPTS) for i in range(GROUP)]
    answer = Response((1, 2, 3, 4), "4567=7", (0.0,) * 4, truncated=False)
    settings = ClientConfig(micro_batch_wait_s=0.0)  # as assay.trainer.core.rewards has it

    with BackgroundClient(
        "bench", config=settings, transport=lambda: Service(lambda _item: True)
    ) as client:
        judge = Judge(client, RewardConfig(verifier="miniature"))

        def streamed(portions: int) -> None:
            scoring = judge.open_round(GROUP)
            size = -(-len(requests) // portions)
            for start in range(0, len(requests), size):
                for request in requests[start : start + size]:
                    scoring.submit(request, answer)
                if portions > 1:
                    time.sleep(0.005)
            assert len(scoring.results()) == len(requests)

        ways: dict[str, Callable[[], object]] = {
            "at once": lambda: streamed(1),
            "as they end": lambda: streamed(PORTIONS),
            "one call": lambda: judge.score([sample_of(one, answer) for one in requests]),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(ROUNDS + 3):
            for name, way in ways.items():
                before = time.process_time()
                way()
                if number >= 3:
                    times[name].append(time.process_time() - before)
    print(f"CPU ms for {len(requests)} responses, medians [quartiles] of {ROUNDS} rounds")
    for name, taken in times.items():
        low, middle, high = (1e3 * value for value in statistics.quantiles(taken, n=4))
        print(f"  {name:<12} {middle:6.1f} [{low:.1f}, {high:.1f}]")
