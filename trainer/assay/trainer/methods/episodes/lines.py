"""A composition with episodes, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings.words import count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def episode_lines(config: Config) -> list[str]:
    """Who acts where, and within which limits."""
    episodes = config.method.episodes
    limits = [f"{count(episodes.turns, 'turn')}" if episodes.turns else "any number of turns"]
    if episodes.tokens:
        limits.append(f"{count(episodes.tokens, 'token')} of the policy's")
    if episodes.seconds:
        limits.append(f"{episodes.seconds:g} s")
    lines = [
        f"an episode in the environment {episodes.environment}: at most {', '.join(limits)}",
        f"each turn of at most {config.rollout.max_new_tokens:,} tokens",
        "tools run while the engine draws for other episodes; what they answer is in no loss",
        "cut by its seconds or by a fault: in no loss, without a reward",
    ]
    if episodes.answer:
        lines.append(f"an answer is a turn that {episodes.answer} finds something in")
    if episodes.limits == "leave-out":
        lines.append("ended by a limit of turns or tokens: in no loss; its reward counts")
    if episodes.cache:
        lines.append("samples of a row share tool results after the same calls")
    return lines


def episode_reward_lines(config: Config) -> list[str]:
    """What an episode earns."""
    return [
        f"R: the environment's, at the end; it may ask the verifier {config.reward.verifier}",
        *(
            ["with a critic a turn's own reward lies on its last token, R on the last turn's"]
            if config.method.has_critic
            else []
        ),
    ]
