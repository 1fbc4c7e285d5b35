"""An environment for tinker-cookbook (0.6) whose reward is a reward server's.

    env = partial(AssayEnv, renderer, row["question"], {"answer": row["answer"], "task": "math"})
    builder = ProblemGroupBuilder(env_thunk=env, num_envs=16)

For verifiers that compare the samples of a group use `AssayGroupBuilder(env, 16)`.

A fault raises `FaultError` out of `step` ("raise", the only policy). The training loop's
`rollout_error_tolerance` decides whether the run ends, the sample is drawn anew, or it leaves its
group (docs/trainers/tinker.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tinker
from tinker_cookbook import renderers
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, StepResult
from tinker_cookbook.utils import logtree

from assay.clients.trainers.common.faults import FaultPolicy, judgement_of, read_policy
from assay.clients.trainers.common.scoring import score_awaited
from assay.clients.trainers.common.settings import read_settings
from assay.clients.trainers.common.single import read_item
from assay.clients.types import Item, Judgement


class AssayEnv(Env):
    """A question of one turn, as the cookbook's `ProblemEnv`, with the server as the judge.

    Args:
        renderer: the cookbook's renderer of the model.
        question: the prompt.
        row: "reference" or "answer", "verifier", "task", "parameters".
        convo_prefix: messages before the question.
        options: as for `read_settings`: target, verifier, task, token, ...

    Raises:
        ConfigError: no target is given, or another policy than "raise".
    """

    def __init__(
        self,
        renderer: renderers.Renderer,
        question: str,
        row: Mapping[str, Any],
        convo_prefix: list[renderers.Message] | None = None,
        **options: Any,
    ) -> None:
        self.renderer = renderer
        self.conversation = [*(convo_prefix or []), {"role": "user", "content": question}]
        self.row = dict(row)
        self.item: Item | None = None
        self.judged_with_group = False
        self.settings = read_settings(options)
        read_policy(self.settings.on_fault or "raise", [FaultPolicy.RAISE], "tinker-cookbook")

    async def initial_observation(self) -> tuple[Any, Any]:
        """The prompt, and where generation stops."""
        prompt = self.renderer.build_generation_prompt(self.conversation)
        return prompt, self.renderer.get_stop_sequences()

    async def step(self, action: list[int], *, extra: Any = None) -> StepResult:
        """Judges the response (tokens), or keeps it for the group's one call.

        `extra` may say why sampling stopped.

        Raises:
            FaultError: there is no judgement.
        """
        message, _ = self.renderer.parse_response(action)
        self.item = read_item(
            self.settings,
            self.conversation,
            [
                {
                    "role": "assistant",
                    "content": renderers.get_text_content(message),
                    "tool_calls": message.get("tool_calls"),
                }
            ],
            self.row,
            response_token_count=len(action),
            truncated=(extra or {}).get("stop_reason") == "length",
            trainer="tinker",
        )
        if self.judged_with_group:
            return self._ended(0.0)
        [result] = await score_awaited(self.settings, [self.item])
        judgement = judgement_of(result)
        logs = {"verdict": judgement.verdict, "explanation": judgement.explanation}
        with logtree.scope_header("Reward"):
            logtree.table_from_dict({"reward": judgement.reward, **logs}, caption="Assay")
        return self._ended(judgement.reward, metrics_of(judgement), logs)

    def _ended(
        self,
        reward: float,
        metrics: dict[str, float] | None = None,
        logs: dict[str, str] | None = None,
    ) -> StepResult:
        return StepResult(
            reward=reward,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=self.renderer.get_stop_sequences(),
            metrics=metrics or {},
            logs=logs or {},
        )


def metrics_of(judgement: Judgement) -> dict[str, float]:
    """The components of a reward, as the cookbook logs them."""
    return {f"assay/{part.name}": part.score for part in judgement.components}


@dataclass(frozen=True)
class AssayGroupBuilder(EnvGroupBuilder):
    """A group whose responses are judged in one call, for verifiers that compare them.

    `dataset_name` is for the cookbook's log.
    """

    env_thunk: Callable[[], AssayEnv]
    num_envs: int
    dataset_name: str = "assay"

    async def make_envs(self) -> Sequence[AssayEnv]:
        """The environments, which leave the judging to the group."""
        envs = [self.env_thunk() for _ in range(self.num_envs)]
        for env in envs:
            env.judged_with_group = True
        return envs

    async def compute_group_rewards(
        self, trajectory_group: Any, env_group: Sequence[AssayEnv]
    ) -> list[tuple[float, dict[str, float]]]:
        """The reward of each response, judged beside the others.

        Raises:
            FaultError: one of them has no judgement.
        """
        items = [
            replace(env.item, id=str(number), group_id="group")
            for number, env in enumerate(env_group)
            if env.item is not None
        ]
        results = await score_awaited(env_group[0].settings, items)
        judgements = [judgement_of(result) for result in results]
        return [(judgement.reward, metrics_of(judgement)) for judgement in judgements]

    def logging_tags(self) -> list[str]:
        """The data set's name."""
        return [self.dataset_name]
