"""The parts of rewards within a response, and what keeps them from being hacked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.methods.part import Part, Switches, to

if TYPE_CHECKING:
    from assay.trainer.settings import Config

_CODE = "process supervision for code, arXiv 2410.17621"


def _is_dense(config: Config) -> bool:
    return config.algorithm.dense.weight > 0


def _leaves_comments_out(config: Config) -> bool:
    """Whether a verifier that cuts into lines gives comments and blank lines no reward."""
    return _is_dense(config) and config.reward.parameters.get("splitting") == "code-line"


def _without_neutral_comments(config: Config) -> Switches:
    """Every line counts, whatever stands on it."""
    return {"reward.parameters": {**config.reward.parameters, "splitting": "line"}}


def without_steps(_config: Config) -> Switches:
    """No rewards of steps, however they were to count."""
    return {
        "algorithm.dense.weight": 0.0,
        "algorithm.dense.decay_to": 0.0,
        "algorithm.dense.mix": "add",
    }


DENSE_PARTS: tuple[Part, ...] = (
    Part(
        "dense-rewards",
        "reward",
        "The spans of a judgement (steps, lines, turns) earn their rewards at the tokens where "
        "they end.",
        "DeepSeekMath, arXiv 2402.03300, section 4.1.3",
        _is_dense,
        without_steps,
    ),
    Part(
        "span-normalisation",
        "reward",
        "The rewards of spans are divided by their number, so that more lines earn no more.",
        f"{_CODE}; the form is a derivation",
        lambda c: _is_dense(c) and c.algorithm.dense.normalise,
        to("algorithm.dense.normalise", False),
    ),
    Part(
        "neutral-comments",
        "reward",
        "Comments, blank lines and what is not in a block of code earn nothing and do not count as "
        "lines.",
        f"{_CODE}; that they do not count is ours",
        _leaves_comments_out,
        _without_neutral_comments,
    ),
    Part(
        "outcome-weighted-spans",
        "reward",
        "The spans of a response that is correct count for less.",
        f"{_CODE}, equation 3",
        lambda c: _is_dense(c) and c.algorithm.dense.correct_share < 1,
        to("algorithm.dense.correct_share", 1.0),
    ),
)
