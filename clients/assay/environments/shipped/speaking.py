"""Who plays a user: rules of the row, or a model behind an OpenAI-compatible endpoint.

A judge service has no call that writes freely. What goes wrong at the endpoint is a fault, never a
user who says nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2

from assay.clients.faults import make_fault
from assay.environments.environment import EpisodeFault
from assay.environments.shipped.answers import without_thoughts
from assay.kit.reasons import Reason

DONE = "<done/>"
_DONE = re.compile(r"<\s*/?\s*done\s*/?\s*>", re.IGNORECASE)
_BUSY = frozenset({429, 502, 503, 504})
_TRIES = 4
_PAUSE_S = 0.25
_MOST_PAUSE_S = 8.0
_SHOWN_CHARS = 300
_MOST_BYTES = 4 * 1024 * 1024
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PLAY = (
    "You play a user who talks to an assistant; you are not the assistant. What you want:\n\n{goal}"
    "\n\nWrite the user's next message and nothing else: short, in the user's words, with what is "
    "asked for and no more. Make nothing up that is not said above. When all that you want is "
    "done, or cannot be done, write {done} at the end of your message."
)


@dataclass(frozen=True, slots=True)
class UserLine:
    """What a user says next.

    Attributes:
        done: the user ends the talk with it.
    """

    text: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class TalkLine:
    """A message of a talk; `by_user` or else by the policy."""

    by_user: bool
    text: str


class PlayedUser(Protocol):
    """Plays the user of one row."""

    async def say(self, talk: Sequence[TalkLine]) -> UserLine:
        """The user's next message, the first where nothing was said yet.

        Raises:
            EpisodeFault: there is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class UserRule:
    """A rule of a scripted user.

    Attributes:
        when: texts of which the policy's latest message must hold one, in any case; none: always.
    """

    when: tuple[str, ...]
    say: str
    done: bool = False


class RuledUser:
    """Says what the first rule says that fits and was not used yet, else `otherwise`."""

    def __init__(self, rules: Sequence[UserRule], otherwise: str) -> None:
        self._rules = list(rules)
        self._otherwise = otherwise

    async def say(self, talk: Sequence[TalkLine]) -> UserLine:
        """See PlayedUser."""
        latest = talk[-1].text.casefold() if talk and not talk[-1].by_user else ""
        for rule in self._rules:
            if not rule.when or any(one.casefold() in latest for one in rule.when):
                self._rules.remove(rule)
                return UserLine(rule.say, rule.done)
        return UserLine(self._otherwise)


def read_rules(script: object) -> list[UserRule]:
    """A script of a row: objects of `when` (a text or texts; may be missing), `say` and `done`.

    Raises:
        ValueError: it is something else; the number of the rule is said.
    """
    if not isinstance(script, Sequence) or isinstance(script, str):
        raise ValueError("the user's script is no list of rules")
    rules = []
    for number, one in enumerate(script, start=1):
        given = one if isinstance(one, Mapping) else {}
        when, say, done = given.get("when", ()), given.get("say"), given.get("done", False)
        several = [when] if isinstance(when, str) else when
        if (
            not isinstance(say, str)
            or not say.strip()
            or not isinstance(done, bool)
            or not isinstance(several, Sequence)
            or not all(isinstance(text, str) and text for text in several)
        ):
            raise ValueError(f"rule {number} of the user's script is no {{when, say, done}}")
        rules.append(UserRule(tuple(several), say, done))
    return rules


@dataclass(frozen=True, slots=True)
class UserEndpoint:
    """A model that plays users.

    Attributes:
        base_url: up to and with "/v1".
        key_env: names the environment variable with the key; empty for none.
        timeout_s: of one message, with retries.
    """

    base_url: str
    model: str
    key_env: str = ""
    timeout_s: float = 60.0
    temperature: float = 1.0
    max_tokens: int = 512

    async def write(self, messages: Sequence[Mapping[str, str]]) -> str:
        """What the model writes to messages; never blank.

        Raises:
            EpisodeFault: ENGINE_DIED, ENGINE_FAILED or DEADLINE_EXCEEDED.
        """
        body = {
            "model": self.model,
            "messages": list(messages),
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        try:
            async with asyncio.timeout(self.timeout_s):
                text = await self._asked(json.dumps(body).encode())
        except TimeoutError:
            raise self._fault(
                Reason.DEADLINE_EXCEEDED, f"did not answer in {self.timeout_s:g} s"
            ) from None
        text = without_thoughts(text).strip()
        if not text:
            raise self._fault(Reason.ENGINE_FAILED, "wrote nothing")
        return text

    async def _asked(self, body: bytes) -> str:
        key = os.environ.get(self.key_env, "") if self.key_env else ""
        url = httpx2.URL(f"{self.base_url.rstrip('/')}/chat/completions")
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        async with httpx2.AsyncClient(
            timeout=self.timeout_s, trust_env=url.host not in _LOOPBACK
        ) as client:
            for number in range(1, _TRIES + 1):
                pause_s = _PAUSE_S * 2**number
                try:
                    answer = await client.post(url, content=body, headers=headers)
                except httpx2.TimeoutException:
                    raise TimeoutError from None
                except httpx2.HTTPError as error:
                    if number == _TRIES:
                        what = f"cannot be reached: {type(error).__name__}"
                        raise self._fault(Reason.ENGINE_DIED, what) from error
                else:
                    if answer.status_code not in _BUSY or number == _TRIES:
                        return self._read(answer, key)
                    pause_s = _wanted_pause(answer.headers.get("retry-after", ""), pause_s)
                await asyncio.sleep(min(pause_s, _MOST_PAUSE_S))
        raise AssertionError  # the last try returns or raises

    def _read(self, answer: Any, key: str) -> str:
        text = answer.text[:_MOST_BYTES]
        if answer.status_code != 200:
            shown = " ".join(text.split())[:_SHOWN_CHARS]
            shown = shown.replace(key, "***") if key else shown
            raise self._fault(Reason.ENGINE_FAILED, f"answered {answer.status_code}: {shown}")
        try:
            content = json.loads(text)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            raise self._fault(Reason.ENGINE_FAILED, "answered what is no chat completion") from None
        return content if isinstance(content, str) else ""

    def _fault(self, reason: Reason, what: str) -> EpisodeFault:
        return EpisodeFault(make_fault(reason, f"the model {self.model!r} at its endpoint {what}"))


class ModelUser:
    """A user with a goal, played by a model.

    The model reads the goal and what was said, never a tool's call or answer, and the policy's
    words as those of the assistant. Only the model can end the talk.
    """

    def __init__(self, endpoint: UserEndpoint, goal: str) -> None:
        self._endpoint = endpoint
        self._task = _PLAY.format(goal=goal, done=DONE)

    async def say(self, talk: Sequence[TalkLine]) -> UserLine:
        """See PlayedUser."""
        messages = [{"role": "system", "content": self._task}]
        if not talk or talk[0].by_user:
            messages.append({"role": "user", "content": "Hello. How can I help you?"})
        for line in talk:
            role = "assistant" if line.by_user else "user"
            messages.append({"role": role, "content": _DONE.sub("", line.text) or "..."})
        said = await self._endpoint.write(messages)
        return UserLine(_DONE.sub("", said).strip(), _DONE.search(said) is not None)


def _wanted_pause(header: str, pause_s: float) -> float:
    try:
        return max(0.0, float(header))
    except ValueError:
        return pause_s
