"""An OpenEnv environment (0.10) as a reward: the policy's turns are its actions, hosted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from assay.environments.hosting.hosted import TIMEOUT_S, Hosted, Sample, name_of
from assay.kit.errors import ConfigError


def host_openenv(
    make: Any,
    action: Any,
    *,
    reset: Sequence[str] = (),
    unreadable: float | None = None,
    name: str = "",
    timeout_s: float = TIMEOUT_S,
    deterministic: bool = False,
) -> Hosted:
    """The sum of an environment's rewards over the policy's turns.

    Args:
        make: called for a new environment for each sample: its class.
        action: makes an action of what the policy said in a turn; None where that is none.
        reset: the columns that `reset` gets, where the row has them.
        unreadable: the reward where `action` is None; None makes that a fault.
        name: by default that of the class.
        timeout_s: of each sample.
        deterministic: see `Hosted`.

    Raises:
        ConfigError: what is given cannot be called.
    """
    if not callable(make) or not callable(action):
        raise ConfigError("host_openenv takes the environment's class and a function, action")

    async def score(sample: Sample) -> Any:
        environment = make()
        try:
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
        finally:
            close = getattr(environment, "close", None)
            if close is not None:
                await _awaited(close)

    return Hosted(
        score,
        name or name_of(make),
        description=f"The rewards of the OpenEnv environment {name_of(make)}.",
        timeout_s=timeout_s,
        deterministic=deterministic,
    )


async def _awaited(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    found = function(*given, **named)
    return await found if inspect.isawaitable(found) else found
