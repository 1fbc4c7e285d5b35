"""Parts and words of truncated rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.part import Part, to
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


PARTS: tuple[Part, ...] = (
    Part(
        "truncation",
        "sampling",
        "A response draws at most a window of tokens in a step and goes on in the next; what is "
        "not finished is valued by the critic, which learns from what is.",
        "T-PPO, arXiv 2506.15050",
        lambda c: c.method.truncation.window > 0,
        to("method.truncation.window", 0),
        code=("algos.gae.boundary_values",),
        needs={
            "critic": "only a critic values what has not ended",
            "token-ratio": "the ratio of a response needs the whole response",
        },
        takes={
            "groups": "samples of a prompt end in different steps",
            "collector": "responses come from slots",
            "outcomes": "there are no whole groups to learn from",
            "fresh": "a response goes on under the next weights",
            "beside": "a slot waits for the weights of the next step",
        },
    ),
)


def sampling_lines(config: Config) -> list[str]:
    """What a step draws."""
    window = config.method.truncation.window
    if not window:
        return []
    return [
        (
            f"in {count(config.samples_per_step, 'slot')}, each of which draws at most "
            f"{count(window, 'token')} a step: a response that needs more keeps its slot and goes "
            "on under the next weights; a slot that is free takes the next sample"
            + ("; what a turn leaves of it, the next draws" if config.method.turns.on else "")
        )
    ]


def advantage_lines(config: Config) -> list[str]:
    """What a response that goes on is worth."""
    if not config.method.truncation.window:
        return []
    goes_on = "a response that goes on: r = 0, and V behind its last token is V before it"
    if config.method.turns.on:
        goes_on = (
            "a dialogue that goes on: what its turns have earned; where more may come to one, V "
            "behind its last token is V before it"
        )
    return [
        goes_on,
        "the policy learns from the tokens that this step drew, each once",
    ]


def critic_lines(config: Config) -> list[str]:
    """What the critic learns from."""
    if not config.method.truncation.window:
        return []
    fewest = config.method.truncation.min_finished
    return [
        "learns from the responses that ended in this step, all of their tokens"
        + (f"; from nothing where fewer than {fewest:,} did" if fewest > 1 else "")
    ]
