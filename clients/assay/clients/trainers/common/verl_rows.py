"""verl's options and rows, for both adapters of verl; verl is not imported.

verl also loads `assay.clients.trainers.verl` by its path, and a module loaded so cannot define
dataclasses: they stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.clients.faults import make_fault
from assay.clients.trainers.common.faults import FaultPolicy, read_policy
from assay.clients.trainers.common.labels import labels_of
from assay.clients.trainers.common.rows import label_of, prompt_of
from assay.clients.trainers.common.scoring import details_of
from assay.clients.trainers.common.settings import NAMES, Settings, read_settings
from assay.clients.types import Item, Parameter, Result
from assay.kit.errors import ConfigError
from assay.kit.reasons import Reason

TOOL_FAULT = "assay_tool_fault"
"""Among a trajectory's extra fields: a tool of an environment broke (`faces.verl`)."""
_POLICIES = (FaultPolicy.RAISE, FaultPolicy.MASK)
_OWN = ("tasks", "components", "parameters")
_VERLS = ("reward_router_address", "reward_model_tokenizer")  # passed where a reward model runs


@dataclass(frozen=True, slots=True)
class Options:
    """The options in `reward_kwargs` and the environment; `assay.clients.trainers.verl` lists them.

    Attributes:
        tasks: from `data_source` to task.
        components: names of those to log.
    """

    settings: Settings
    policy: FaultPolicy
    tasks: Mapping[str, str] = field(default_factory=dict)
    components: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


def read_options(given: Mapping[str, Any]) -> Options:
    """The options of a call.

    Raises:
        ConfigError: a name is unknown, no target is given, or a value is out of range.
    """
    known = (*NAMES, *_OWN, *_VERLS)
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ConfigError(
            f"reward_kwargs has {unknown[0]!r}; choose from: {', '.join((*NAMES, *_OWN))}"
        )
    settings = read_settings(given)
    return Options(
        settings,
        read_policy(settings.on_fault or FaultPolicy.RAISE, _POLICIES, "verl"),
        dict(given.get("tasks") or {}),
        tuple(given.get("components") or ()),
        dict(given.get("parameters") or {}),
    )


def item_of(
    options: Options,
    data_source: str,
    response: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None,
    *,
    step: int | None = None,
    **more: Any,
) -> Item:
    """The item of a row of verl; `more` are further fields.

    `data_source` is the task, unless the options or `extra_info` name one. `extra_info` may have
    `verifier`, `task`, `parameters`, and `prompt` or `question`.

    Raises:
        ConfigError: the ground truth is no reference.
    """
    row = extra_info or {}
    settings = options.settings
    verifier = str(settings.verifier or row.get("verifier") or "")
    task = settings.task or row.get("task") or options.tasks.get(data_source) or data_source
    prompt = row.get("prompt") or row.get("question") or ""
    own = {k: v for k, v in (row.get("parameters") or {}).items() if v is not None}
    return Item(
        response=response,
        reference=label_of(ground_truth, settings.reference, f"a row of {data_source!r}"),
        verifier=verifier,
        task="" if verifier else str(task),
        parameters={**options.parameters, **own},
        labels=labels_of(trainer="verl", data=data_source, step=step),
        **{"prompt": prompt_of(prompt), **more},
    )


def broken(extra_info: Mapping[str, Any] | None) -> Result | None:
    """The fault of a trajectory whose tool broke; None where none did."""
    told = (extra_info or {}).get(TOOL_FAULT)
    return Result("", make_fault(Reason.ENVIRONMENT_FAILED, str(told)[:1000])) if told else None


def answer_of(options: Options, result: Result) -> dict[str, Any]:
    """The mapping for verl: `score`, and the values that it logs beside it.

    Raises:
        FaultError: a fault, and the policy is "raise".
    """
    return details_of(result, options.policy, options.components)
