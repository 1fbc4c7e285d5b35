"""Parts and words of truncated rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.metric import Column, Metric, metrics, percent
from assay.trainer.settings.part import Part, switch
from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

PARTS: tuple[Part, ...] = (
    Part(
        "truncation", "sampling",
        "A response draws at most a window of tokens in a step and goes on in the next; what is "
        "not finished is valued by the critic, which learns from what is.",
        "T-PPO, arXiv 2506.15050", *switch("method.truncation.window", 0),
        code=("algos.gae.boundary_values",),
        needs={
            "critic": "only a critic values what has not ended",
            "token-ratio": "the ratio of a response needs the whole response",
            "pausing": "a response goes on in the next step",
        },
        takes={
            "groups": "samples of a prompt end in different steps",
            "collector": "responses come from slots",
            "outcomes": "there are no whole groups to learn from",
            "fresh": "a response goes on under the next weights",
            "beside": "a slot waits for the weights of the next step",
        },
    ),
)  # fmt: skip


def sampling_lines(config: Config) -> list[str]:
    """What a step draws."""
    window = config.method.truncation.window
    return [
        (
            f"in {count(config.samples_per_step, 'slot')}, each of which draws at most "
            f"{count(window, 'token')} a step: a response that needs more keeps its slot and goes "
            "on under the next weights; a slot that is free takes the next sample"
            + ("; what a turn leaves of it, the next draws" if config.method.turns.on else "")
        )
    ]


def advantage_lines(config: Config) -> list[str]:
    """What an unfinished response is worth."""
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
    fewest = config.method.truncation.min_finished
    return [
        "learns from the responses that ended in this step, all of their tokens"
        + (f"; from nothing where fewer than {fewest:,} did" if fewest > 1 else "")
    ]


METRICS: tuple[Metric, ...] = (
    *metrics("sampling",
        ("finished_share", "share",
         ("Slots whose response ended in this step. Null without method.truncation, as the five "
          "below.")),
        ("tokens_per_decode_step", "tokens",
         ("generated_tokens over the forward passes that drew them: of each batch of "
          "rollout.batch slots the most tokens of one slot, of the slowest process.")),
        ("prefix_tokens", "tokens",
         "Response tokens of earlier steps that the policy read again before it went on."),
        ("slot_age_mean", "steps",
         "How many steps the unfinished responses have been drawn over; null without any."),
        ("slot_age_max", "steps", "The oldest of them."),
    ),
    *metrics("critic",
        ("value_skipped", "",
         ("1 where fewer responses ended than method.truncation.min_finished, so that the critic "
          "learnt nothing; null without truncation.")),
    ),
)  # fmt: skip

COLUMNS = (
    Column(
        "ended", ("finished_share",), 7, 4, "slots whose response ended", percent,
        lambda c: c.method.truncation.window > 0, after="fault",
    ),
)  # fmt: skip
