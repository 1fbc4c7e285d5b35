"""Runs what an environment's author wrote: tools and hooks, asynchronous or in a thread."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from assay.environments.environment import Environment, ToolError, ToolResult
from assay.environments.tools import tools_of
from assay.environments.types import ToolCall

_THREADS = 128
_executor = functools.cache(
    lambda: ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="assay-environment")
)


async def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function; a plain one runs in a thread, and what it gives may be awaited."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)

    def run() -> Any:
        try:
            return function(*args, **kwargs)
        except StopIteration as error:  # which a future cannot hold: whoever awaits would hang
            raise RuntimeError(f"StopIteration: {error}") from error

    act = functools.partial(contextvars.copy_context().run, run)
    given = await asyncio.get_running_loop().run_in_executor(_executor(), act)
    return await given if inspect.isawaitable(given) else given


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

    async def run(self, call: ToolCall) -> ToolResult:
        """See ToolRunner."""
        if not call.name:
            raise ToolError(f"the call cannot be read: {call.text[:200]}")
        known = self._tools.get(call.name)
        if known is None:
            there = ", ".join(self._tools) or "none"
            raise ToolError(f"there is no tool {call.name[:80]!r}; tools: {there}")
        arguments = known.arguments(call)
        given = await called(getattr(self._environment, call.name), **arguments)
        if isinstance(given, ToolResult):
            return given
        return ToolResult("" if given is None else str(given))
