"""A reward for `verifiers` (0.3, 0.4: `verifiers.v1`), and so for prime-rl.

    [env.taskset.task.rewards.assay]
    fn = "assay.clients.trainers.verifiers.reward"

A fault raises `FaultError`. verifiers makes it a `TaskError` on the trace, which then has no
reward; prime-rl leaves such a trace out of group means and loss ("drop", the only policy).

In a `Rubric` (verifiers 0.1 to 0.3) use `assay.clients.trainers.verifiers_rubric`: a Rubric makes
*0* of what a function raises. docs/trainers/verifiers.md has the settings.
"""

from __future__ import annotations

from typing import Any

from assay.clients.trainers.common.faults import FaultPolicy, judgement_of, read_policy
from assay.clients.trainers.common.scoring import score_awaited
from assay.clients.trainers.common.settings import read_settings
from assay.clients.trainers.common.single import read_item


async def reward(task: Any, trace: Any) -> float:
    """The reward of a trace's last reply. Its components become the trace's metrics `assay/NAME`.

    `task` has a `prompt`, and may have `reference` or `answer`, `verifier`, `task`, `parameters`.

    Raises:
        FaultError: there is no judgement.
        ConfigError: a setting is missing.
    """
    settings = read_settings()
    read_policy(settings.on_fault or FaultPolicy.DROP, [FaultPolicy.DROP], "verifiers")
    row = {name: value for name, value in dict(task).items() if value is not None}
    item = read_item(settings, task.prompt_text, trace.last_reply, row, trainer="verifiers")
    [result] = await score_awaited(settings, [item])
    judgement = judgement_of(result)
    trace.record_metrics({f"assay/{part.name}": part.score for part in judgement.components})
    return judgement.reward
