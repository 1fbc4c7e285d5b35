"""Runs what an environment's author wrote: tools and hooks, asynchronous or in a thread."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from assay.environments.environment import Environment, ToolError, ToolResult
from assay.environments.tools import tools_of
from assay.environments.types import ToolCall


async def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function; a plain one runs in a thread, and what it gives may be awaited.

    Each call has a thread of its own: one that never returns holds up no other, nor the exit.
    """
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)

    def run() -> Any:
        try:
            return function(*args, **kwargs)
        except StopIteration as error:  # which a future cannot hold: whoever awaits would hang
            raise RuntimeError(f"StopIteration: {error}") from error

    given = await _in_thread(functools.partial(contextvars.copy_context().run, run))
    return await given if inspect.isawaitable(given) else given


async def _in_thread(act: Callable[[], Any]) -> Any:
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # whoever gives up the wait leaves the call as it is

    def work() -> None:
        try:
            future.set_result(act())
        except BaseException as error:  # noqa: BLE001  # to be raised where it is awaited
            future.set_exception(error)

    threading.Thread(target=work, name="assay-environment", daemon=True).start()
    return await asyncio.wrap_future(future)


class ToolRunner(Protocol):
    """Answers calls of tools."""

    async def run(self, call: ToolCall) -> ToolResult:
        """The tool's answer.

        Raises:
            ToolError: the call is refused, in words for the policy.
            Exception: whatever else the tool raises.
        """
        ...


class DirectRunner:
    """Calls the environment's methods."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._tools = tools_of(type(environment))
        self._brings_tools = type(environment).call is not Environment.call

    async def run(self, call: ToolCall) -> ToolResult:
        """See ToolRunner."""
        if not call.name:
            raise ToolError(f"the call cannot be read: {call.text[:200]}")
        known = self._tools.get(call.name)
        if known is None and self._brings_tools:
            return _result(await called(self._environment.call, call))
        if known is None:
            there = ", ".join(self._tools) or "none"
            raise ToolError(f"there is no tool {call.name[:80]!r}; tools: {there}")
        arguments = known.arguments(call)
        return _result(await called(getattr(self._environment, call.name), **arguments))


def _result(given: Any) -> ToolResult:
    if isinstance(given, ToolResult):
        return given
    return ToolResult("" if given is None else str(given))
