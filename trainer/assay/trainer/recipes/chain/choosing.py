"""Which of a stage's checkpoints the next stage begins with: by entropy.

Of the checkpoints of a supervised run the best one by accuracy is seldom the best to begin RL with:
its distributions have grown narrow. Ring-lite (arXiv 2506.14731, abstract) chooses by entropy; how
much is enough, and that the latest such checkpoint is taken, is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.runs import checkpoints
from assay.kit.runs.records import read_rows
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class Beginning:
    """A checkpoint that will be chosen.

    Attributes:
        run: the folder of the run that leaves it.
        least: nats a token that it must have.
        link: the path under which the next stage finds it.
    """

    run: Path
    least: float
    link: Path

    def choose(self) -> str:
        """Makes the link; says what was chosen.

        Raises:
            ConfigError: the chosen checkpoint is damaged.
            TrainingStoppedError: no checkpoint has so much entropy.
        """
        kept = RunFolder(self.run)
        found = entropies(read_rows(kept.metrics), checkpoints.steps(kept.checkpoints))
        step = latest_above(found, self.least)
        told = ", ".join(f"{entropy:.3g} at step {at}" for at, entropy in found.items())
        if step is None:
            raise TrainingStoppedError(
                f"no checkpoint of {self.run} has an entropy of {self.least:g} nats a token: "
                f"{told or 'there is none'}; lower `entropy`, or train it for fewer steps"
            )
        chosen = kept.checkpoints / checkpoints.name_of(step)
        checkpoints.verify(chosen)
        self.link.parent.mkdir(parents=True, exist_ok=True)
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(chosen.resolve())
        return f"begins with {checkpoints.name_of(step)} of {self.run} (entropy {told})"


def check_kept(config: Config, origin: str) -> None:
    """Whether a run keeps all its checkpoints as whole models, so that there is a choice.

    Raises:
        ConfigError: it does not.
    """
    every, kept = config.run.checkpoint_every, config.run.keep_checkpoints
    wanted = -(-config.run.steps // every) if every else 0
    if not every or kept < wanted:
        raise ConfigError(
            f"{origin}: `entropy` chooses from checkpoints, which its `model` does not keep; set "
            + (f"run.keep_checkpoints={wanted} there" if every else "run.checkpoint_every there")
        )
    if config.model.lora.rank:
        raise ConfigError(
            f"{origin}: `entropy` chooses from checkpoints that are whole models, and its `model` "
            "keeps adapters: set model.lora.rank=0 there"
        )


def entropies(rows: Iterable[Mapping[str, Any]], steps: Sequence[int]) -> dict[int, float]:
    """The mean entropy of the steps that led to each checkpoint, since the one before.

    Args:
        rows: of metrics.jsonl; those without an entropy count for nothing.
        steps: with a checkpoint, rising.

    Returns:
        By step, in nats a token; a checkpoint without such a row is left out.
    """
    found: dict[int, list[float]] = {step: [] for step in steps}
    for row in rows:
        after = next((step for step in steps if row["step"] <= step), None)
        if after is not None and row.get("entropy") is not None:
            found[after].append(row["entropy"])
    return {step: math.fsum(some) / len(some) for step, some in found.items() if some}


def latest_above(found: Mapping[int, float], least: float) -> int | None:
    """The last step whose entropy is at least so much."""
    return max((step for step, entropy in found.items() if entropy >= least), default=None)
