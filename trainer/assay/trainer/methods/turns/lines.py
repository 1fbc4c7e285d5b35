"""A composition with several turns, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def turn_lines(config: Config) -> list[str]:
    """Who speaks when; nothing for single responses."""
    turns = config.method.turns
    if not turns.on:
        return []
    limit = f"each of at most {config.rollout.max_new_tokens:,} tokens"
    if turns.mode == "reconsider":
        return [
            f"attempt, then always a second attempt; {limit}",
            "what asks for it is in no loss and in no count",
        ]
    when = (
        "always"
        if turns.revise == "always"
        else 'where the verification says "wrong" (in an evaluation also where it says nothing '
        "that can be read)"
    )
    return [
        f"attempt, verification, revision; {limit}",
        f"revision: {when}; verdicts are read in {turns.parsing} parsing",
        "what asks for a turn is in no loss and in no count",
    ]


def turn_reward_lines(config: Config) -> list[str]:
    """What each turn earns, on its last token."""
    turns, verifier = config.method.turns, config.reward.verifier
    if not turns.on:
        return []
    lines = [f"acc_t: 1 where the verifier {verifier} finds attempt t correct, else 0"]
    if turns.reward == "final":
        lines.append("R = acc of the last attempt, at the end of the last turn; the others earn 0")
    else:
        first = {"accuracy": "acc_1", "verification": "what its verification earns", "none": "0"}
        lines.append(f"first attempt: {first[turns.first_reward]}")
        if turns.mode == "verify":
            truth_reward = "1 where its verdict is true, else 0" if turns.verifier_reward else "0"
            lines.append(f"verification: {truth_reward}")
        gain = f" + {turns.shaping:g} * (acc_2 - acc_1)" if turns.shaping else ""
        lines.append(f"second attempt: acc_2{gain}")
    loss = config.method.loss
    if loss.kl_most and turns.kl == "first":
        lines.append("the KL is that of the first attempt's tokens")
    if loss.kl_most and loss.kl_place == "reward":
        lines.append(f"each token's reward less {loss.kl_words} * log(pi / pi_ref)")
    if turns.reward == "final" or not turns.independent:
        lines.append("an attempt without a judgement (a fault) takes the response out of the loss")
    else:
        lines.append(
            "a first attempt without a judgement (a fault) takes the response out of the loss, a "
            "second one itself alone"
        )
    return lines


def turn_credit_lines(config: Config) -> list[str]:
    """How far a turn's reward reaches; nothing for single responses."""
    turns = config.method.turns
    if not turns.on:
        return []
    return [
        "by turns, each with its own r: neither values nor rewards of later turns reach earlier "
        "ones"
        if turns.independent
        else "over turns, each with its own r: the rewards of later turns reach earlier ones"
    ]
