"""Parts and words of FIRE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part, to

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


PARTS: tuple[Part, ...] = (
    Part(
        "fire",
        "sampling",
        "The first token of each response comes from a flat distribution over the likeliest few; "
        "the evaluation decodes regularly.",
        "FIRE, arXiv 2410.21236",
        lambda c: c.method.fire.enabled,
        to("method.fire.enabled", False),
        code=("algos.sampling.fire_first_token_probs",),
        needs={
            "one-turn": "each turn has a first token",
        },
        takes={
            "first-tokens": "first tokens come from a flat distribution",
        },
    ),
)


def lines(config: Config) -> list[str]:
    """Where first tokens come from."""
    fire = config.method.fire
    if not fire.enabled:
        return []
    in_loss = {
        "mask": "it is not in the policy's loss",
        "exact": "in the loss it is weighed by min(pi_old / that probability, 1)",
        "parity": "in the loss it counts as if the policy had drawn it",
    }[fire.mode]
    drawn = f"softmax(the {fire.top_k} largest logits / {fire.temperature:g})"
    return [
        f"the first token of a response from {drawn}; {in_loss}",
        "the evaluation decodes regularly, its first tokens too",
    ]
