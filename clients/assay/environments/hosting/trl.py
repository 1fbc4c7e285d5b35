"""A reward function of TRL's (`f(prompts, completions, **columns)`), hosted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from assay.environments.hosting.hosted import Hosted, HostedSample, How, hosted, name_of
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

_NOBODYS = {"trainer_state": None, "environments": None}
_GIVEN = ("prompts", "completions", "completion_ids", "log_extra", "log_metric")


def host_function(
    function: Callable[..., Any],
    *,
    conversational: bool = False,
    **how: Unpack[How],
) -> Hosted:
    """A reward function of TRL's, awaited or not, called with lists of one.

    One that compares the completions of a group sees a group of one, so it belongs in TRL.

    Args:
        function: takes `prompts`, `completions` and columns; returns a list of one number or None.
        conversational: it gets messages, as of chat data, and else texts.
        how: see `Hosted`.

    Raises:
        ConfigError: it cannot be called so.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{function!r} is no reward function of TRL's") from error
    required = [
        one.name
        for one in parameters.values()
        if one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    everything = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if "completions" not in parameters and not everything:
        raise ConfigError(f"{name_of(function)!r} takes no completions, as TRL's functions do")

    def score(sample: HostedSample) -> Any:
        prompt: Any = sample.prompt if conversational else sample.question
        completion: Any = sample.completion if conversational else sample.text
        given = {
            **{key: [value] for key, value in _columns(sample, required).items()},
            **_NOBODYS,
            "prompts": [prompt],
            "completions": [completion],
            "completion_ids": None,
            "log_extra": _ignored,
            "log_metric": _ignored,
        }
        taken = {key: value for key, value in given.items() if everything or key in parameters}
        found = function(**taken)
        if inspect.isawaitable(found):
            return _one_awaited(found)
        return _one(found)

    return hosted(
        score,
        name_of(function),
        " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split()),
        how,
    )


def _columns(sample: HostedSample, required: Sequence[str]) -> Mapping[str, Any]:
    """The columns; a reference that is no object is the one that the function asks for.

    Raises:
        Unjudgeable: the function asks for one that the row lacks.
    """
    columns = dict(sample.columns)
    wanted = [name for name in required if name not in (*_GIVEN, *_NOBODYS)]
    if len(wanted) == 1 and set(columns) == {"reference"}:
        columns[wanted[0]] = columns["reference"]
    lacking = [name for name in wanted if name not in columns]
    if lacking:
        text = f"it wants the column {lacking[0]!r}; write an object as reference, with a key for "
        raise Unjudgeable(Reason.UNUSABLE_REFERENCE, f"{text}each column")
    return columns


def _ignored(*_: Any) -> None:
    """TRL's logging, which has no place here."""


async def _one_awaited(found: Any) -> Any:
    return _one(await found)


def _one(found: Any) -> Any:
    if isinstance(found, str | bytes | dict) or not hasattr(found, "__len__"):
        kind = type(found).__name__
        raise Unjudgeable(Reason.VERIFIER_FAILED, f"it returned a {kind}, not a list of one reward")
    if len(found) != 1:
        text = f"it returned {len(found)} rewards for 1 completion"
        raise Unjudgeable(Reason.VERIFIER_FAILED, text)
    return found[0]
