"""Asks a reward server whether the attempts of dialogues are right.

An attempt is right where the verdict is "correct"; a verifier that has no such verdict is refused.
What the reward server could not judge is that dialogue's fault, with the server's reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.clients import AsyncRewardClient, Item
from assay.clients import Fault as ClientFault
from assay.genrm.domain import (
    ChatMessage,
)
from assay.kit.errors import CallError
from assay.kit.faults import ItemFault
from assay.kit.reasons import Reason

CORRECT = "correct"


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts of one dialogue, and the right answer."""

    prompt: tuple[ChatMessage, ...]
    texts: tuple[str, ...]
    ground_truth: str


class AnswerVerifier:
    """Asks a reward server through `client`, which it closes. Belongs to one event loop."""

    def __init__(self, client: AsyncRewardClient) -> None:
        self._client = client
        self._able: set[str] = set()
        self._lock = asyncio.Lock()

    async def close(self) -> None:
        """Closes the client."""
        await self._client.close()

    async def judge(
        self, dialogues: Mapping[str, Attempts], verifier: str, timeout_s: float
    ) -> dict[str, tuple[bool, ...] | ItemFault]:
        """Whether each attempt is right, or a fault, by the caller's id of the dialogue.

        `verifier` is a name on the reward server; all is answered within `timeout_s`.
        """
        try:
            async with asyncio.timeout(timeout_s):
                fault = await self._fault(verifier, timeout_s)
                if fault is not None:
                    return dict.fromkeys(dialogues, fault)
                items = [item for one in dialogues.values() for item in _items(one, verifier)]
                results = iter(await self._client.score(items, timeout_s=timeout_s))
        except CallError as error:
            fault = ItemFault(error.reason, f"the reward server was not asked: {error}")
            return dict.fromkeys(dialogues, fault)
        except TimeoutError:
            fault = ItemFault(Reason.DEADLINE_EXCEEDED, "the reward server did not answer in time")
            return dict.fromkeys(dialogues, fault)
        found: dict[str, tuple[bool, ...] | ItemFault] = {}
        for name, one in dialogues.items():
            outcomes = [next(results).outcome for _ in one.texts]
            faults = [outcome for outcome in outcomes if isinstance(outcome, ClientFault)]
            found[name] = (
                ItemFault(faults[0].reason, f"an attempt: {faults[0].message}", faults[0].metadata)
                if faults
                else tuple(getattr(outcome, "verdict", "") == CORRECT for outcome in outcomes)
            )
        return found

    async def _fault(self, verifier: str, timeout_s: float) -> ItemFault | None:
        async with self._lock:
            if verifier in self._able:
                return None
            info = (await self._client.list_verifiers(timeout_s=timeout_s)).find(verifier)
            if info is None:
                text = f"the reward server has no verifier {verifier[:80]!r}"
                return ItemFault(Reason.UNKNOWN_VERIFIER, text)
            if CORRECT not in info.verdicts:
                text = (
                    f"the verifier {verifier[:80]!r} never says {CORRECT!r} "
                    f"(its verdicts: {', '.join(info.verdicts)}): choose another answer_verifier"
                )
                return ItemFault(Reason.INVALID_PARAMETER, text)
            self._able.add(verifier)
            return None


def _items(one: Attempts, verifier: str) -> Sequence[Item]:
    prompt = [{"role": message.role, "content": message.content} for message in one.prompt]
    return [
        Item(text, reference=one.ground_truth, verifier=verifier, prompt=prompt)
        for text in one.texts
    ]
