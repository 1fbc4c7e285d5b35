"""What is done with advantages: `method.advantage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.advantage.parts import PARTS, lines, refining_lines
from assay.trainer.settings.method import Lines, Method
from assay.trainer.settings.objective import AdvantageConfig

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def check(config: Config) -> str:
    """What does not go together, and what to do; empty where all does."""
    algorithm = config.method
    form, estimator = algorithm.advantage.difficulty, algorithm.advantage.estimator
    if form != "none" and estimator not in ("group", "rloo"):
        return (
            f'method.advantage.difficulty = "{form}" weighs prompts by their groups; it needs '
            'method.advantage.estimator = "group" or "rloo"'
        )
    if form == "linear" and algorithm.pairwise.against != "none":
        return (
            'method.advantage.difficulty = "linear" goes by right and wrong, which '
            'method.pairwise does not know; use "exp"'
        )
    return ""


METHOD = Method(
    name="advantage",
    settings=AdvantageConfig,
    is_on=lambda _config: True,
    rank=200,
    parts=PARTS,
    lines=(Lines("Advantage", 20, lines), Lines("Advantage", 60, refining_lines)),
    check=check,
)
