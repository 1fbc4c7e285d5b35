"""An environment for tinker-cookbook (0.6) whose reward is a reward server's.

    env = partial(AssayEnv, renderer, row["question"], {"answer": row["answer"], "task": "math"})
    builder = ProblemGroupBuilder(env_thunk=env, num_envs=16)

The settings are those of `assay.clients.adapters.settings`. A fault raises `FaultError` out of
`step` ("raise", the one policy of the adapter). What becomes of it says the training loop's
`rollout_error_tolerance`: None or False, the default: the run ends; True (`RetryOnFailure`): the
sample is drawn anew, three times for a group, then the group is left out; `MinViableGroup(...)`:
the sample leaves its group, whose mean is over the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tinker
from tinker_cookbook import renderers
from tinker_cookbook.rl.types import Env, StepResult
from tinker_cookbook.utils import logtree

from assay.clients.adapters.faults import FaultPolicy, judgement_of, read_policy
from assay.clients.adapters.scoring import score_awaited
from assay.clients.adapters.settings import read_settings
from assay.clients.adapters.single import read_item


class AssayEnv(Env):
    """A question of one turn; like the cookbook's `ProblemEnv`, with the server as the judge.

    Args:
        renderer: the cookbook's renderer of the model.
        question: what the policy is asked.
        row: "reference" or "answer", "verifier", "task", "parameters".
        convo_prefix: messages before the question.
        options: what `read_settings` takes: target, verifier, task, token, ...

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
        self.settings = read_settings(options)
        read_policy(self.settings.on_fault or "raise", [FaultPolicy.RAISE], "tinker-cookbook")

    async def initial_observation(self) -> tuple[Any, Any]:
        """The prompt, and where generation stops."""
        prompt = self.renderer.build_generation_prompt(self.conversation)
        return prompt, self.renderer.get_stop_sequences()

    async def step(self, action: list[int], *, extra: Any = None) -> StepResult:
        """Judges the response.

        Args:
            action: the response's tokens.
            extra: may say why sampling stopped.

        Raises:
            FaultError: there is no judgement.
        """
        message, _ = self.renderer.parse_response(action)
        item = read_item(
            self.settings,
            self.conversation,
            renderers.get_text_content(message),
            self.row,
            response_token_count=len(action),
            truncated=(extra or {}).get("stop_reason") == "length",
        )
        [result] = await score_awaited(self.settings, [item])
        judgement = judgement_of(result)
        with logtree.scope_header("Reward"):
            logtree.table_from_dict(
                {
                    "reward": judgement.reward,
                    "verdict": judgement.verdict,
                    "explanation": judgement.explanation,
                },
                caption="Assay",
            )
        return StepResult(
            reward=judgement.reward,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=self.renderer.get_stop_sequences(),
            metrics={f"assay/{part.name}": part.score for part in judgement.components},
            logs={"verdict": judgement.verdict, "explanation": judgement.explanation},
        )
