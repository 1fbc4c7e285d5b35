"""An OpenEnv environment (0.10) as a reward: the policy's turns are its actions, hosted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Unpack

from assay.environments.hosting.hosted import Hosted, HostedSample, How, hosted, name_of
from assay.kit.errors import ConfigError


def host_openenv(
    make: Any,
    action: Any,
    *,
    reset: Sequence[str] = (),
    unreadable: float | None = None,
    **how: Unpack[How],
) -> Hosted:
    """The sum of an environment's rewards over the policy's turns.

    Args:
        make: called for a new environment for each sample: its class, or a function that makes a
            client of a running one, such as `openenv.GenericEnvClient`.
        action: makes an action of what the policy said in a turn; None where that is none.
        reset: the columns that `reset` gets, where the row has them.
        unreadable: the reward where `action` is None; None makes that a fault.
        how: see `Hosted`.

    Raises:
        ConfigError: what is given cannot be called.
    """
    if not callable(make) or not callable(action):
        raise ConfigError("host_openenv takes the environment's class and a function, action")

    async def score(sample: HostedSample) -> Any:
        async with AsyncExitStack() as stack:
            environment = await _opened(make, stack)
            given = {key: sample.columns[key] for key in reset if key in sample.columns}
            await _awaited(environment.reset, **given)
            earned: list[float] = []
            for text in sample.turns:
                chosen = action(text)
                if chosen is None:
                    return unreadable
                observation = await _awaited(environment.step, chosen)
                if observation.reward is not None:
                    earned.append(float(observation.reward))
                if observation.done:
                    break
            return sum(earned) if earned else None

    return hosted(
        score, name_of(make), f"The rewards of the OpenEnv environment {name_of(make)}.", how
    )


async def _opened(make: Any, stack: AsyncExitStack) -> Any:
    """A new environment, or a client's connection to one, which the stack closes."""
    made = make()
    if hasattr(type(made), "__aenter__"):
        return await stack.enter_async_context(made)
    close = getattr(made, "close", None)
    if close is not None:
        stack.push_async_callback(_awaited, close)
    return made


async def _awaited(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    found = function(*given, **named)
    return await found if inspect.isawaitable(found) else found
