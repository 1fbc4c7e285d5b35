"""RL by tinker-cookbook (0.6) on rewards from a reward server.

    assay up                                # in a checkout; serves on 127.0.0.1:50051
    pip install ./protos ./kit ./clients    # there, into the cookbook's environment
    export TINKER_API_KEY=...
    python examples/tinker_rl.py

A sample that nobody can judge is drawn anew (`rollout_error_tolerance`).

Run in `make test-adapters`: the data set of this file through the cookbook's own rollouts, with a
policy that says what it is told to, against a real server. `make test` has no cookbook, and only
reads the file. Not run: the configuration at the end and the training, which
is Tinker's service.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from functools import partial

import chz
from tinker_cookbook import cli_utils, model_info, renderers
from tinker_cookbook.rl.problem_env import ProblemGroupBuilder
from tinker_cookbook.rl.types import RLDataset, RLDatasetBuilder
from tinker_cookbook.tokenizer_utils import get_tokenizer

from assay.clients.trainers.tinker import AssayEnv

TARGET = os.environ.get("ASSAY_TARGET", "127.0.0.1:50051")
MODEL = os.environ.get("MODEL", "Qwen/Qwen3-8B-Base")


class Sums(RLDataset):
    """Groups of responses to sums of two digits."""

    def __init__(self, renderer: renderers.Renderer, groups: int = 8, samples: int = 16) -> None:
        self.renderer, self.groups, self.samples = renderer, groups, samples
        self.rows = [(f"What is {a} + {b}?", str(a + b)) for a in range(100) for b in range(100)]

    def __len__(self) -> int:
        return len(self.rows) // self.groups

    def get_batch(self, index: int) -> Sequence[ProblemGroupBuilder]:
        """The groups of a step."""
        return [self.group(*row) for row in self.rows[index * self.groups :][: self.groups]]

    def group(self, question: str, answer: str) -> ProblemGroupBuilder:
        """The environments of one question."""
        row = {"answer": answer}
        env = partial(AssayEnv, self.renderer, question, row, target=TARGET, task="math")
        return ProblemGroupBuilder(env_thunk=env, num_envs=self.samples)


@chz.chz
class SumsBuilder(RLDatasetBuilder):
    """Makes the data set when training begins."""

    renderer_name: str
    model_name: str

    async def __call__(self) -> tuple[RLDataset, RLDataset | None]:
        """The data set to train on, and none to evaluate on."""
        return Sums(
            renderers.get_renderer(self.renderer_name, get_tokenizer(self.model_name))
        ), None


if __name__ == "__main__":
    from tinker_cookbook.rl import train

    renderer = model_info.get_recommended_renderer_name(MODEL)
    config = train.Config(
        model_name=MODEL,
        recipe_name="assay_sums",
        renderer_name=renderer,
        log_path=cli_utils.runs_path("assay_sums"),
        dataset_builder=SumsBuilder(renderer_name=renderer, model_name=MODEL),
        learning_rate=4e-5,
        max_tokens=256,
        rollout_error_tolerance=True,
    )
    asyncio.run(train.main(config))
