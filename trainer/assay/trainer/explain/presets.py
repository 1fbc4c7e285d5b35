"""Which parts each published method is made of.

The presets of `configs/` are held to this by tests, and `--explain` says where settings that carry
a method's name depart from it. The sources of their numbers stand in the presets, beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.trainer.settings.registry import parts, parts_on

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

METHODS: Mapping[str, frozenset[str]] = {
    "grpo": frozenset({"group-normalisation", "std-scaling", "kl"}),
    "dr_grpo": frozenset({"group-normalisation", "constant-normaliser"}),
    "rloo": frozenset({"leave-one-out", "whole-response-loss", "kl"}),
    "dapo": frozenset(
        {
            "dynamic-sampling",
            "soft-overlong",
            "group-normalisation",
            "std-scaling",
            "clip-higher",
            "dual-clip",
            "token-level-loss",
        }
    ),
    "ppo": frozenset({"critic"}),
    "vc_ppo": frozenset({"critic", "value-pretraining", "decoupled-gae"}),
    "vapo": frozenset(
        {
            "group-sampling",
            "length-adaptive-gae",
            "critic",
            "value-pretraining",
            "decoupled-gae",
            "clip-higher",
            "token-level-loss",
            "positive-lm-loss",
        }
    ),
    "t_ppo": frozenset(
        {
            "group-sampling",
            "truncation",
            "critic",
            "value-pretraining",
            "decoupled-gae",
            "clip-higher",
            "token-level-loss",
        }
    ),
    "tmn_grpo": frozenset(
        {
            "group-normalisation",
            "task-scaling",
            "difficulty-weight",
            "clip-higher",
            "dual-clip",
            "token-level-loss",
        }
    ),
    "spo": frozenset({"segment-advantages", "probability-mask", "token-level-loss"}),
    "areal": frozenset(
        {
            "asynchronous-rollouts",
            "group-normalisation",
            "advantage-whitening",
            "token-level-loss",
            "decoupled-ppo",
        }
    ),
    "gspo": frozenset({"group-normalisation", "std-scaling", "clip-higher", "sequence-ratio"}),
    "cispo": frozenset(
        {
            "dynamic-sampling",
            "soft-overlong",
            "group-normalisation",
            "std-scaling",
            "cispo",
            "token-level-loss",
        }
    ),
    "pairwise_ppo": frozenset(
        {
            "anchor-reward",
            "order-gap-fault",
            "critic",
            "value-pretraining",
            "decoupled-gae",
            "token-level-loss",
            "kl",
        }
    ),
    "pairwise_group": frozenset(
        {"group-in-pairs", "order-gap-fault", "symmetric-group", "token-level-loss", "kl"}
    ),
    "pag": frozenset(
        {
            "self-verification",
            "selective-revision",
            "turn-rewards",
            "first-attempt-reward",
            "verifier-reward",
            "turn-shaping",
            "turn-independence",
            "role-normalisation",
            "group-sampling",
            "critic",
            "clip-higher",
            "token-level-loss",
        }
    ),
    "score": frozenset(
        {
            "second-attempt",
            "turn-rewards",
            "first-attempt-reward",
            "turn-shaping",
            "group-sampling",
            "critic",
            "clip-higher",
            "token-level-loss",
        }
    ),
    "direct_multi_turn": frozenset(
        {
            "second-attempt",
            "turn-rewards",
            "first-attempt-reward",
            "group-sampling",
            "critic",
            "clip-higher",
            "token-level-loss",
        }
    ),
    "tango": frozenset(
        {
            "cotrained-verifier",
            "verifier-warmup",
            "verification-form",
            "class-weights",
            "dense-rewards",
            "span-normalisation",
            "step-interpolation",
            "step-decay",
            "group-normalisation",
            "std-scaling",
        }
    ),
    "code_prm": frozenset(
        {
            "group-sampling",
            "dense-rewards",
            "span-normalisation",
            "neutral-comments",
            "outcome-weighted-spans",
            "critic",
            "value-init",
            "value-pretraining",
            "token-level-loss",
            "kl",
        }
    ),
}
_MAY_HAVE: Mapping[str, frozenset[str]] = dict.fromkeys(
    ("ppo", "vc_ppo", "vapo", "t_ppo"), frozenset({"value-init"})
)
"""Parts that a method's paper has and its preset leaves to whoever has the model for it."""


def departures(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """How settings differ from the method whose name they carry.

    Returns:
        The parts that the method has and the settings lack, and those that the settings add, both
        in the order of the table; None for a name that is no published method's.
    """
    expected = METHODS.get(config.method.name)
    if expected is None:
        return None
    on = {part.name for part in parts_on(config)}
    on -= _MAY_HAVE.get(config.method.name, frozenset())
    order = [part.name for part in parts()]
    return (
        tuple(name for name in order if name in expected - on),
        tuple(name for name in order if name in on - expected),
    )
