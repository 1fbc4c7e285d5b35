"""Errors in a verifier's description, or in one of its judgements. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from assay.clients.types import Judgement, Parameter, ParameterInfo, ServerInfo, VerifierInfo

_KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_TYPES = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "string": (str,),
    "string_list": (tuple, list),
}
_ROUNDING = 1e-9
MAX_EXPLANATION_CHARS = 1000


def check_spec(info: VerifierInfo, server: ServerInfo) -> Iterator[tuple[str, str]]:
    """Each property of a description, with its error or an empty text."""
    yield "the name is kebab-case", _unless(_KEBAB.fullmatch(info.name), info.name)
    yield "it has a version", _unless(info.version.strip(), "the version is empty")
    yield "the description is one sentence", _sentence(info.description)
    yield "tasks are kebab-case and its own", _tasks(info, server)
    ranged = math.isfinite(info.min_reward) and math.isfinite(info.max_reward)
    yield (
        "the range of rewards is finite and not empty",
        _unless(
            ranged and info.min_reward < info.max_reward,
            f"it is {info.min_reward:g} to {info.max_reward:g}",
        ),
    )
    wrong = [verdict for verdict in info.verdicts if not _KEBAB.fullmatch(verdict)]
    twice = len(set(info.verdicts)) < len(info.verdicts)
    yield (
        "verdicts are listed, kebab-case, once each",
        _unless(info.verdicts and not wrong and not twice, ", ".join(wrong or info.verdicts)),
    )
    yield (
        "what is cached is deterministic",
        _unless(info.deterministic or not info.cacheable, "it is cacheable and not deterministic"),
    )
    names = [parameter.name for parameter in info.parameters]
    yield (
        "parameters have names of their own",
        _unless(len(set(names)) == len(names), ", ".join(names)),
    )
    for parameter in info.parameters:
        yield f"the parameter {parameter.name!r} is well-formed", parameter_problem(parameter)


def parameter_problem(parameter: ParameterInfo) -> str:
    """The error in a parameter's description; empty for none."""
    if not _SNAKE.fullmatch(parameter.name):
        return "the name is not snake_case"
    if parameter.type not in _TYPES:
        return f"the type {parameter.type!r} is none"
    if not parameter.description.strip():
        return "it has no description"
    if parameter.allowed_values and parameter.type != "string":
        return "allowed values are for texts"
    low, high = parameter.minimum, parameter.maximum
    if (low is not None or high is not None) and parameter.type not in ("int", "float"):
        return "a range is for numbers"
    return "" if parameter.default is None else default_problem(parameter, parameter.default)


def default_problem(parameter: ParameterInfo, value: Parameter) -> str:
    """The error in a default; empty for none."""
    right_kind = isinstance(value, _TYPES[parameter.type])
    if not right_kind or (isinstance(value, bool) and parameter.type != "bool"):
        return f"the default {value!r} is no {parameter.type}"
    if parameter.allowed_values and value not in parameter.allowed_values:
        return f"the default {value!r} is not among the allowed values"
    if isinstance(value, int | float):
        low = -math.inf if parameter.minimum is None else parameter.minimum
        high = math.inf if parameter.maximum is None else parameter.maximum
        if not low <= value <= high:
            return f"the default {value!r} is out of its range"
    return ""


def check_judgement(info: VerifierInfo, judgement: Judgement, *, additive: bool) -> str:
    """The error in a judgement; empty for none. `additive`: reward is the sum of weight * score."""
    if judgement.verdict not in info.verdicts:
        return f"the verdict {judgement.verdict!r} is not listed"
    reward = judgement.reward
    if not info.min_reward - _ROUNDING <= reward <= info.max_reward + _ROUNDING:
        return f"the reward {reward:g} is outside {info.min_reward:g} to {info.max_reward:g}"
    if not judgement.components:
        return "it has no components"
    total = math.fsum(part.weight * part.score for part in judgement.components)
    if additive and abs(total - reward) > _ROUNDING * max(1.0, abs(reward)):
        return f"the reward is {reward:g} and its components sum to {total:g}"
    names = [part.name for part in judgement.components] + list(judgement.suspicions)
    odd = [name for name in names if not re.fullmatch(r"[a-z0-9]+(?:[-.:/][a-z0-9]+)*", name)]
    if odd:
        return f"the name {odd[0]!r} is not kebab-case"
    return _explanation(judgement.explanation) or _reference(info, judgement)


def _explanation(text: str) -> str:
    if not text.strip():
        return "it has no explanation"
    if len(text) > MAX_EXPLANATION_CHARS or "\n" in text:
        return "the explanation is not one line of at most 1,000 characters"
    return ""


def _reference(info: VerifierInfo, judgement: Judgement) -> str:
    signed = (judgement.verifier, judgement.version)
    return _unless(signed == (info.name, info.version), f"it is signed {' '.join(signed)!r}")


def _sentence(text: str) -> str:
    if not text.strip():
        return "it is empty"
    starts = text[0].isupper() or not text[0].isalpha()
    if "\n" in text or not starts or not text.endswith("."):
        return f"{text[:60]!r} does not start with a capital and end with a full stop on one line"
    return ""


def _tasks(info: VerifierInfo, server: ServerInfo) -> str:
    wrong = [task for task in info.tasks if not _KEBAB.fullmatch(task)]
    if wrong:
        return f"{wrong[0]!r} is not kebab-case"
    for other in server.verifiers:
        shared = set(other.tasks) & set(info.tasks)
        if other.name != info.name and shared:
            return f"{other.name!r} serves {min(shared)!r} too"
    return ""


def _unless(right: object, problem: str) -> str:
    return "" if right else problem or "it is empty"
