"""Any object that rewards as a function that our reward server serves.

`assay audit package.module:object` writes a file that says `audited = hosted_of(object)`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from assay.environments.hosting import host_function, host_rubric, host_taskset
from assay.environments.hosting.hosted import HostedSample, hosted, name_of
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

_OF_A_TRAINER = {"completion_ids", "trainer_state", "log_extra", "log_metric", "environments"}


def hosted_of(found: Any) -> Any:
    """What the reward server can call, of a function, a rubric, a taskset or a scorer.

    Raises:
        ConfigError: it is none of them.
    """
    if hasattr(found, "spec") or getattr(type(found), "__module__", "").startswith("assay."):
        return found
    if inspect.isfunction(found) and hasattr(found, "__registry_info__"):
        return host_scorer(found)
    modules = {kind.__module__.partition(".")[0] for kind in type(found).__mro__}
    kinds = {kind.__name__ for kind in getattr(found, "__mro__", type(found).__mro__)}
    if isinstance(found, type):
        modules |= {kind.__module__.partition(".")[0] for kind in found.__mro__}
    if "verifiers" in modules:
        return host_taskset(found) if kinds & {"Taskset", "Task"} else host_rubric(found)
    if not callable(found):
        raise ConfigError(f"{found!r:.80} is no function that rewards, and nothing that is hosted")
    try:
        names = list(inspect.signature(found).parameters)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{found!r:.80} has no signature to read") from error
    if "completions" in names:
        return _of_trl(found)
    if "solution_str" in names and "ground_truth" in names:
        return found
    return positional(found)


def _of_trl(function: Callable[..., Any]) -> Any:
    """TRL's function as it stands; one that is awaited or wants what a trainer alone has, hosted.

    It gets messages where it says so of `completions`: `list[list[dict[str, str]]]`.
    """
    parameters = inspect.signature(function).parameters
    chats = "dict" in str(parameters["completions"].annotation)
    required = {name for name, one in parameters.items() if one.default is one.empty}
    if inspect.iscoroutinefunction(function) or required & _OF_A_TRAINER:
        return host_function(function, conversational=chats)
    if not chats or hasattr(function, "conversational"):
        return function

    @functools.wraps(function)
    def audited(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    vars(audited)["conversational"] = True
    return audited


def positional(function: Callable[..., Any]) -> Callable[[str, Any], Any]:
    """A function of a response and a reference, whatever it calls them."""

    def audited(response: str, reference: Any) -> Any:
        return function(response, reference)

    return audited


def host_scorer(scorer: Any) -> Any:
    """A scorer of Inspect (inspect_ai 0.3): made here with no arguments, or made already."""
    from inspect_ai._util.registry import registry_info  # noqa: PLC0415 - a peer
    from inspect_ai.model import ModelOutput  # noqa: PLC0415
    from inspect_ai.scorer import Target, value_to_float  # noqa: PLC0415
    from inspect_ai.solver import TaskState  # noqa: PLC0415

    takes = list(inspect.signature(scorer).parameters)
    made = scorer if takes[:2] == ["state", "target"] else scorer()
    name = registry_info(scorer).name
    to_float = value_to_float()

    async def score(sample: HostedSample) -> Any:
        columns: Mapping[str, Any] = sample.columns
        right = columns.get("reference", columns.get("target", ""))
        state = TaskState(
            model="audit/none",
            sample_id=0,
            epoch=0,
            input=sample.question,
            messages=[],
            target=Target(right),
            output=ModelOutput.from_content("audit/none", sample.text),
            metadata=dict(columns),
        )
        found = await made(state, Target(right))
        if found is None:
            raise Unjudgeable(Reason.UNSUPPORTED_INPUT, f"the scorer {name!r} gave no score")
        return to_float(found.value)

    return hosted(score, name_of(scorer), f"The scorer {name} of Inspect.", {})
