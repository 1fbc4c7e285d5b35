"""The tokens between the policy's turns: PAG's protocol in the policy's own chat template.

    prompt  attempt  <verify>  verification  <revise>  attempt        PAG (arXiv 2506.10406)
    prompt  attempt  <reconsider>  attempt                            direct multi-turn, SCoRe

What stands in angle brackets is in no loss and no count. The policy's tokens are never decoded and
tokenised again: the chat template renders a conversation with a mark as the policy's turn, and what
follows the mark follows the policy's tokens. So a template that rewrites earlier turns, such as
thoughts, does not apply.

The wording is ours (assay.clients.judging.self_verification), or the settings'; the required
closing sentences are the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.clients.judging.self_verification import (
    RECONSIDER,
    REVISE,
    VERIFY,
    Parsing,
    Verdict,
    parse_verdict,
    revision_due,
)
from assay.kit.errors import ConfigError
from assay.trainer.data.problems import Problem, render
from assay.trainer.engines.types import Tokenizer
from assay.trainer.methods.turns.settings import TurnsConfig

_MARK = "ASSAY-POLICY-TURN"


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a dialogue continues.

    Attributes:
        between: the tokens before the second turn, the third, ...; never empty.
        verifies: the second turn is a verification; else every turn is an attempt.
        always: a revision follows whatever the verification says.
        parsing: how a verification must close.
    """

    between: tuple[tuple[int, ...], ...]
    verifies: bool
    always: bool = False
    parsing: Parsing = "strict"

    def is_verification(self, turn: int) -> bool:
        """Whether the turn of this number, from 0, is one."""
        return self.verifies and turn % 2 == 1

    def verdict(self, text: str) -> Verdict:
        """What a verification says."""
        return parse_verdict(text, strict=self.parsing == "strict")

    def asks_again(self, verdict: Verdict, *, validation: bool) -> bool:
        """Whether a revision follows; see `self_verification.revision_due`."""
        return self.always or revision_due(verdict, validation)

    def before(self, turn: int, last_ids: Sequence[int]) -> tuple[int, ...]:
        """The tokens before turn `turn`, from 1, given the tokens of the last one.

        The template's end of a turn is left out where the policy wrote it.
        """
        between = self.between[turn - 1]
        return between[1:] if len(between) > 1 and last_ids[-1] == between[0] else between

    def room(self, max_new_tokens: int) -> int:
        """Most tokens of a dialogue after its prompt."""
        turns = len(self.between) + 1
        return turns * max_new_tokens + sum(map(len, self.between))


def protocol_of(config: TurnsConfig, tokenizer: Tokenizer) -> Protocol:
    """The protocol of settings with several turns, in the tokenizer's chat template.

    Raises:
        ConfigError: the template does not show the policy's turns, or puts nothing between two of
            them.
    """
    if config.mode == "reconsider":
        asks = [config.reconsider_prompt or RECONSIDER]
    else:
        asks = [config.verify_prompt or VERIFY, config.revise_prompt or REVISE]
    messages: list[tuple[str, str]] = [("user", "?")]
    between = []
    for ask in asks:
        between.append(
            _behind_the_mark([*messages, ("assistant", _MARK), ("user", ask)], tokenizer)
        )
        messages += [("assistant", "."), ("user", ask)]
    return Protocol(
        tuple(between),
        verifies=config.mode == "verify",
        always=config.revise == "always",
        parsing=config.parsing,
    )


def _behind_the_mark(messages: Sequence[tuple[str, str]], tokenizer: Tokenizer) -> tuple[int, ...]:
    """The template's tokens from the end of the marked turn up to the next."""
    text = render(Problem("", "", tuple(messages), ""), tokenizer)
    before, mark, behind = text.rpartition(_MARK)
    ids = tuple(tokenizer(behind, add_special_tokens=False)["input_ids"]) if mark else ()
    if not ids:
        found = "nothing behind" if mark else "none of"
        raise ConfigError(
            f"method.turns: the tokenizer's chat template shows {found} the policy's earlier "
            f"turns{'' if before or mark else ' at all'}; use a template for conversations of "
            "several turns, and prompts between the turns that are not empty"
        )
    return ids
