"""What ListJudgeModels and ListProcessModels answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.clients.judging.types import ScoringMode
from assay.genrm.convert import SPLITTINGS
from assay.genrm.engines.base import Capability
from assay.genrm.models import Models, ServedModel
from assay.genrm.self_test import Fitness
from assay.genrm.templates import Template
from assay.kit import limits

# What a model that answers the request on the left can do; the first that there is, is its default.
_MODES: tuple[tuple[Capability, judge_pb2.ScoringMode.ValueType], ...] = (
    ("choose", judge_pb2.SCORING_MODE_TOKEN_PROBABILITY),
    ("rate", judge_pb2.SCORING_MODE_SCALAR_HEAD),
    ("write", judge_pb2.SCORING_MODE_VOTES),
    ("write", judge_pb2.SCORING_MODE_CONSENSUS),
)
_SCORING: dict[ScoringMode, judge_pb2.ScoringMode.ValueType] = {
    "token-probability": judge_pb2.SCORING_MODE_TOKEN_PROBABILITY,
    "votes": judge_pb2.SCORING_MODE_VOTES,
    "consensus": judge_pb2.SCORING_MODE_CONSENSUS,
}
_SPLITTINGS = {
    splitting: process_pb2.StepSplitting.ValueType(n) for n, splitting in SPLITTINGS.items()
}


def judge_models(
    models: Models,
    templates: Iterable[Template],
    max_items: int,
    tests: Mapping[str, Sequence[Fitness]],
) -> judge_pb2.ListJudgeModelsResponse:
    """The judges with the outcomes of their self-tests, by name, the templates and the limits."""
    response = judge_pb2.ListJudgeModelsResponse(
        limits=_limits(max_items), server_version=version("assay-rl-genrm")
    )
    for model in _sorted(models):
        if not model.judges:
            continue
        info = model.info
        response.models.add(
            name=model.name,
            revision=info.revision,
            engine=info.engine,
            scoring_modes=[mode for capability, mode in _MODES if model.does(capability)],
            context_tokens=info.context_tokens,
            deterministic=info.deterministic,
            is_default=model.name == models.default_judge,
            fitness=map(_fitness, tests.get(model.name, ())),
        )
    for template in sorted(templates, key=lambda known: known.ref):
        response.templates.add(
            name=template.ref,
            description=template.description,
            kind=template.kind,
            least_mass=template.least_mass,
            letters=template.letters,
        )
    return response


def _fitness(found: Fitness) -> judge_pb2.TemplateFitness:
    return judge_pb2.TemplateFitness(
        template=found.template,
        scoring_mode=_SCORING[found.scoring],
        fit=found.fit,
        auc=found.auc,
        verdict_mass=found.mass,
        problem=found.problem,
    )


def process_models(models: Models, max_items: int) -> process_pb2.ListProcessModelsResponse:
    """The models that score steps, and the limits."""
    response = process_pb2.ListProcessModelsResponse(
        limits=_limits(max_items), server_version=version("assay-rl-genrm")
    )
    for model in _sorted(models):
        if not model.scores_steps:
            continue
        info = model.info
        response.models.add(
            name=model.name,
            revision=info.revision,
            engine=info.engine,
            default_splitting=_SPLITTINGS[info.splitting],
            generative=not model.does("rate-steps"),
            context_tokens=info.context_tokens,
        )
    return response


def _sorted(models: Models) -> list[ServedModel]:
    return sorted(models, key=lambda model: model.name)


def _limits(max_items: int) -> common_pb2.BatchLimits:
    return common_pb2.BatchLimits(
        max_items=max_items,
        max_message_bytes=limits.MAX_MESSAGE_BYTES,
        max_item_bytes=limits.MAX_ITEM_BYTES,
    )
