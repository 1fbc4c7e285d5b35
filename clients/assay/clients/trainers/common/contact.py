"""First contact: what an adapter's first call finds at its address, in one line of the log.

The first call of a process asks the server for its verifiers, as the client does in any case, so
that this costs no call. A server that is not up yet is waited for, and the log says so. Where no
reward can come of the address or of the names, the call raises `FirstContactError`. One bad row
does not: it is that row's fault.

Threads and event loops share one contact for each target, verifier and task; a forked child makes
its own.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from assay.clients.reward import AsyncRewardClient, RewardClient
from assay.clients.services import who_brings
from assay.clients.types import Item, ServerInfo, VerifierInfo
from assay.kit.errors import AssayError, CallError, DeadlineError, OverloadedError, UnavailableError
from assay.kit.hints import did_you_mean

_log = logging.getLogger(__name__)

WAIT_S = 30.0
"""Longest wait for a server that is not up yet; the client's time-out, where that is shorter."""

_QUIET_S = 1.0  # after this the log says that it waits
_AGAIN_S = 5.0  # so long after a wait in vain, calls raise the same error
_GRACE_S = 5.0
_NAMED = 5

_AWAY = (UnavailableError, DeadlineError, OverloadedError)

WaitReady = Callable[[float], ServerInfo]


class FirstContactError(AssayError):
    """No reward can come of these settings; the text says what was met, and what to do."""


class Addressee(NamedTuple):
    """Whom an adapter asks, and for what; empty texts where each row says it."""

    target: str
    verifier: str = ""
    task: str = ""


class _Contact:
    def __init__(self) -> None:
        self.made: Future[None] = Future()
        self.made.set_running_or_notify_cancel()  # no caller may cancel it for the others
        self.again_s = math.inf  # by the monotonic clock


_contacts: dict[Addressee, _Contact] = {}
_lock = threading.Lock()


def forget() -> None:
    """Makes the next call of each whom a first one, as in a forked child."""
    global _lock  # noqa: PLW0603  # a thread that the child lacks may hold the parent's
    _lock = threading.Lock()
    _contacts.clear()


os.register_at_fork(after_in_child=forget)


def meet(client: RewardClient, whom: Addressee, items: Sequence[Item], missing: str = "") -> None:
    """Makes first contact, or waits for another thread's; later it does nothing.

    `items` are those of the call; `missing` is the remedy for missing references, if any.

    Raises:
        FirstContactError: The server did not answer in time or refuses, or it can judge none of the
            items.
    """
    _contact(client.wait_ready, client.timeout_s, whom, items, missing).result()


async def meet_awaited(
    client: RewardClient | AsyncRewardClient,
    whom: Addressee,
    items: Sequence[Item],
    missing: str = "",
) -> None:
    """As `meet`, without blocking the event loop.

    Raises:
        FirstContactError: As `meet`.
    """
    ask = client.wait_ready if isinstance(client, RewardClient) else _on_this_loop(client)
    made = _contact(ask, client.timeout_s, whom, items, missing)
    if made.done():
        made.result()
    else:
        await asyncio.wrap_future(made)


def _on_this_loop(client: AsyncRewardClient) -> WaitReady:
    loop = asyncio.get_running_loop()

    def ask(timeout_s: float) -> ServerInfo:
        asked = asyncio.run_coroutine_threadsafe(client.wait_ready(timeout_s), loop)
        return asked.result(timeout_s + _GRACE_S)

    return ask


def _contact(
    ask: WaitReady, timeout_s: float, whom: Addressee, items: Sequence[Item], missing: str
) -> Future[None]:
    known = _contacts.get(whom)
    if known is not None and time.monotonic() < known.again_s:
        return known.made
    with _lock:
        known = _contacts.get(whom)
        if known is not None and time.monotonic() < known.again_s:
            return known.made
        contact = _Contact()

        def look() -> tuple[str, str]:
            info = _answer(ask, whom, min(WAIT_S, timeout_s))
            return what_was_met(info, whom, items, missing)

        work = threading.Thread(target=_make, args=(contact, look), daemon=True)
        work.name = "assay-contact"
        work.start()  # where it cannot, nobody waits for this contact
        _contacts[whom] = contact
    return contact.made


def _make(contact: _Contact, look: Callable[[], tuple[str, str]]) -> None:
    try:
        _tell(*look())
    except BaseException as error:  # noqa: BLE001  # the callers' own; they get it
        away = isinstance(error.__cause__, _AWAY)
        contact.again_s = time.monotonic() + (_AGAIN_S if away else 0.0)
        if isinstance(error, FirstContactError):
            _log.error("%s", error)  # one line
        contact.made.set_exception(error)
    else:
        contact.made.set_result(None)


def _tell(said: str, doubts: str) -> None:
    if doubts:
        _log.warning("%s; but %s", said, doubts)
    elif _log.hasHandlers():
        _log.info("%s", said)
    else:
        print(said, file=sys.stderr)  # as logging's last resort does with warnings


def _answer(ask: WaitReady, whom: Addressee, within_s: float) -> ServerInfo:
    began_s = time.monotonic()
    try:
        return ask(min(_QUIET_S, within_s))
    except _AWAY as error:
        left_s = within_s - (time.monotonic() - began_s)
        if left_s <= 0:
            raise _failed(error, whom, within_s) from error
        _log.warning("waiting for %s (%.1f s): %s", whom.target, left_s, _said(error, whom))
    except CallError as error:
        raise _failed(error, whom, 0.0) from error
    try:
        return ask(left_s)
    except CallError as error:
        raise _failed(error, whom, within_s) from error


def _failed(error: CallError, whom: Addressee, waited_s: float) -> FirstContactError:
    waited = f" (waited {waited_s:g} s)" if waited_s else ""
    return FirstContactError(f"first contact failed: {_said(error, whom)}{waited}")


def _said(error: CallError, whom: Addressee) -> str:
    if isinstance(error, DeadlineError):
        return (
            f"{whom.target} takes connections but does not answer: another program may have this "
            "port, or the server is overloaded; correct the address (`assay doctor` looks for "
            "services)"
        )
    return str(error)


def what_was_met(
    info: ServerInfo, whom: Addressee, items: Sequence[Item], missing: str = ""
) -> tuple[str, str]:
    """Who judges the items of a first call, in a line, and what is doubtful, or nothing. Pure.

    Raises:
        FirstContactError: The server judges none of the items: their names are unknown to it, or
            they all lack a reference that is needed. Of a single item only the whom's own name
            decides.
    """
    where = f"the reward server {whom.target}".rstrip() + f" ({info.version})"
    counts = Counter((item.verifier, item.task) for item in items)
    judges = {names: info.find(*names) for names in counts}
    doubts = []
    unknown = [names for names, judge in judges.items() if judge is None]
    if unknown:
        text = _unknown(unknown, info, whom)
        own = any(name and name in (whom.verifier, whom.task) for name in unknown[0])
        if len(unknown) == len(judges) and (own or len(items) > 1):
            raise FirstContactError(f"first contact with {where}: {text}")
        doubts.append(text)
    needy = [one for one in items if _needs_reference(judges[one.verifier, one.task])]
    bare = sum(one.reference is None for one in needy)
    if bare:
        text = f"{bare} of {len(items)} rows have no reference, which is needed"
        if bare == len(items) > 1:
            remedy = missing or "give the rows a reference, or name a verifier that needs none"
            raise FirstContactError(f"first contact with {where}: {text}; {remedy}")
        doubts.append(text)
    found = [_judged_by(names, judge) for names, judge in judges.items() if judge is not None]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    said = f"first contact with {where}: {', '.join(found[:_NAMED]) or 'nobody judges'}{more}"
    return said, "; ".join(doubts)


def _needs_reference(judge: VerifierInfo | None) -> bool:
    return judge is not None and judge.needs_reference


def _judged_by(names: tuple[str, str], judge: VerifierInfo) -> str:
    verifier, task = names
    by = f"{judge.name} (version {judge.version}) judges"
    return by if verifier else f"{by} the task {task!r}"


def _unknown(unknown: Sequence[tuple[str, str]], info: ServerInfo, whom: Addressee) -> str:
    verifier, task = unknown[0]
    remedy = f"`assay verifiers --target {whom.target}` lists what it serves"
    if not verifier and not task:
        return f"rows name neither verifier nor task: set one of them; {remedy}"
    known = [one.name for one in info.verifiers]
    kind, name = ("verifier", verifier) if verifier else ("task", task)
    if not verifier:
        known = [named for one in info.verifiers for named in one.tasks]
    more = f" (and {len(unknown) - 1} other names)" if len(unknown) > 1 else ""
    hint = did_you_mean(name, known) + who_brings(name)
    return f"it has no {kind} {name[:80]!r}{more}, and {remedy}{hint}"
