"""The estimators that go by the rewards of a prompt's samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.method import Estimator
from assay.trainer.settings.part import Part, Switches, switch

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def _of_group(config: Config, baseline: str) -> list[str]:
    """A = (R - baseline) / scale."""
    advantage = config.method.advantage
    scale = {
        "group": " / deviation of the same",
        "batch": " / deviation over the batch",
        "task": " / sqrt(mean variance within the prompts of its task)",
        "none": "",
    }[advantage.scale]
    if not baseline:
        return [f"A = R{scale.replace('of the same', 'of its group from 0')}"]
    centred = f"R - {baseline}"
    return [f"A = ({centred}){scale}" if scale else f"A = {centred}"]


def _is_plain(config: Config) -> bool:
    return config.method.advantage.estimator == "plain"


def _with_group(config: Config) -> Switches:
    """The group's mean is the baseline again; weights that stand without one go with it.

    Of prompts with one sample half have two.
    """
    switches: dict[str, object] = {_KEY: "group"}
    if config.rollout.group_size == 1:
        switches["rollout.group_size"] = 2
        switches["rollout.prompts_per_step"] = max(1, config.rollout.prompts_per_step // 2)
    if config.method.noise.correction == "forward":
        switches["method.noise.correction"] = "none"
    return switches


_KEY = "method.advantage.estimator"
GROUP = Estimator(
    name="group", credit="group", function="assay.trainer.algos.advantages:group_advantages",
    lines=lambda c: _of_group(c, f"mean of the {c.rollout.group_size} rewards of its prompt"),
    part=Part(
        "group-normalisation", "advantage",
        "The mean reward of a prompt's samples is the baseline of each of them.",
        "GRPO, arXiv 2402.03300, section 4.1.2",
        lambda c: c.method.advantage.estimator == "group", None,
        code=("algos.advantages.group_advantages",),
        takes={"critic": "the group is the baseline", "own-zero": "its mean is taken out"},
    ),
)  # fmt: skip
RLOO = Estimator(
    name="rloo", credit="group", function="assay.trainer.algos.advantages:rloo_advantages",
    lines=lambda c: _of_group(
        c, f"mean of the {c.rollout.group_size - 1} other rewards of its prompt"
    ),
    part=Part(
        "leave-one-out", "advantage",
        "The mean reward of the other samples of a prompt is the baseline of each of them.",
        "RLOO, arXiv 2402.14740", *switch(_KEY, "group", "rloo"),
        code=("algos.advantages.rloo_advantages",),
        takes={"critic": "the group is the baseline", "own-zero": "the others' mean is taken out"},
    ),
)  # fmt: skip
SYMMETRIC = Estimator(
    name="symmetric", credit="group",
    function="assay.trainer.algos.advantages:symmetric_advantages",
    lines=lambda c: _of_group(c, "1/2"),
    part=Part(
        "symmetric-group", "advantage",
        "Parity is the baseline: mean chance of beating the others less 1/2, which sums to 0 over "
        "a group and needs no critic.",
        "Pairwise-RL, arXiv 2504.04950; the form is a derivation",
        *switch(_KEY, "group", "symmetric"),
        code=("algos.advantages.symmetric_advantages",),
        takes={"critic": "parity is the baseline", "own-zero": "parity is taken from them"},
    ),
)  # fmt: skip
PLAIN = Estimator(
    name="plain", credit="group", function="assay.trainer.algos.advantages:plain_advantages",
    alone=("none", "batch"),
    lines=lambda c: _of_group(c, ""),
    part=Part(
        "no-baseline", "advantage",
        "A response's reward is its advantage: nothing is taken from it.",
        "ours: REINFORCE as Williams wrote it, without a baseline", _is_plain, _with_group,
        code=("algos.advantages.plain_advantages",), takes={"critic": "there is no baseline"},
    ),
)  # fmt: skip
