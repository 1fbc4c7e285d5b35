"""The runner: the methods of judge.proto and process.proto, on the kit's batch service."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.genrm import convert, dialogues, listing, results
from assay.genrm.answers import AnswerVerifier, Attempts
from assay.genrm.config import RunnerConfig
from assay.genrm.driving import RequestBatcher
from assay.genrm.handler import JudgeHandler, PendingJudgement, PlannedRun
from assay.genrm.judges import judge_group, judge_pair, judge_response
from assay.genrm.metrics import JudgeMetrics
from assay.genrm.models import Models, ServedModel
from assay.genrm.self_test import SelfTests
from assay.genrm.self_verification import score_dialogue
from assay.genrm.steps import score_steps
from assay.genrm.templates import load_templates
from assay.kit import tracing
from assay.kit.batch.coroutines import CoroutinePool
from assay.kit.batch.requests import answer_by_s, check_chunk
from assay.kit.batch.service import BatchService
from assay.kit.faults import ItemFault, Unjudgeable

_SEED_BITS = 62


class Runner:
    """Judges items. Belongs to the event loop that starts it.

    The models are by default those of the settings. Without `answers` callers must say which
    attempts are right.

    Raises:
        ConfigError: a template is wrong.
    """

    def __init__(
        self,
        config: RunnerConfig,
        *,
        models: Models | None = None,
        answers: AnswerVerifier | None = None,
    ) -> None:
        self._config = config
        self._models = models or Models(config.models)
        self._answers = answers
        self._templates = load_templates(config.templates)
        self._tests: dict[str, SelfTests] = {}
        self._start_ended = asyncio.Event()
        self.metrics = JudgeMetrics()
        self._handler = JudgeHandler(self.metrics)
        self._service = BatchService(self._handler, self.metrics.items, config.max_batch_items)

    async def start(self) -> None:
        """Loads the models, has each of them answer, and begins to test what they tell apart.

        Raises:
            StartupError: a model cannot be loaded, or does not answer.
            ConfigError: a model's settings are wrong.
        """
        config = self._config
        try:
            await self._models.start()
            if config.self_test:
                judges = [one for one in self._models if one.judges and one.config.known != "none"]
                self._tests = {
                    model.name: SelfTests(model, self._templates, config.least_mass)
                    for model in judges
                }
                for tests in self._tests.values():
                    tests.begin()
            at_work = {model.name: model.config.max_concurrent for model in self._models}
            # Runs that ask nobody have a pool of their own, without a name.
            pools = self._handler.pools
            for name, items in {**at_work, "": config.queue_items}.items():
                pools[name] = CoroutinePool(items, config.queue_items, config.queue_mb * 2**20)
            engines = {model.name: model.engine for model in self._models}
            for name, pool in pools.items():
                self.metrics.watch(name, pool, engines.get(name))
        finally:
            self._start_ended.set()

    async def started(self) -> None:
        """Returns when `start` has ended, well or not."""
        await self._start_ended.wait()

    async def close(self) -> None:
        """Ends every engine. May be called at any time, and more than once."""
        await asyncio.gather(*(tests.close() for tests in self._tests.values()))
        await self._models.close()
        if self._answers is not None:
            await self._answers.close()

    async def judge_responses(
        self, request: judge_pb2.JudgeResponsesRequest, *, timeout_s: float
    ) -> judge_pb2.JudgeResponsesResponse:
        """Judges each response by itself; one result for each item, in order.

        The answer comes slightly before the caller's deadline, in `timeout_s`.

        Raises:
            CallError: the request as a whole is refused; nothing was asked.
        """
        seed = secrets.randbits(_SEED_BITS)

        def plan(message: judge_pb2.JudgeItem) -> PlannedRun:
            model = self._models.judge(request.settings.model)
            settings = convert.judge_settings(request.settings, seed, self._config.least_mass)
            item = convert.judge_item(message)
            run = judge_response(item, settings, model.info, self._templates)
            return PlannedRun(model, run, partial(results.fill_judgement, model=model.info))

        response = judge_pb2.JudgeResponsesResponse()
        await self._answer(request.items, plan, response, timeout_s)
        return response

    async def judge_pairs(
        self, request: judge_pb2.JudgePairsRequest, *, timeout_s: float
    ) -> judge_pb2.JudgePairsResponse:
        """Judges pairs in both orders; arguments and errors as for `judge_responses`."""
        seed = secrets.randbits(_SEED_BITS)

        def plan(message: judge_pb2.PairItem) -> PlannedRun:
            model = self._models.judge(request.settings.model)
            settings = convert.judge_settings(request.settings, seed, self._config.least_mass)
            gap = convert.max_order_gap(request)
            item = convert.pair_item(message)
            run = judge_pair(item, settings, model.info, self._templates, gap)
            return PlannedRun(model, run, partial(results.fill_pair, model=model.info))

        response = judge_pb2.JudgePairsResponse()
        await self._answer(request.items, plan, response, timeout_s)
        return response

    async def judge_groups(
        self, request: judge_pb2.JudgeGroupsRequest, *, timeout_s: float
    ) -> judge_pb2.JudgeGroupsResponse:
        """Ranks the samples of groups; arguments and errors as for `judge_responses`."""
        seed = secrets.randbits(_SEED_BITS)

        def plan(message: judge_pb2.GroupItem) -> PlannedRun:
            model = self._models.judge(request.settings.model)
            settings = convert.judge_settings(request.settings, seed, self._config.least_mass)
            gap = convert.max_order_gap(request)
            ranking = convert.ranking_mode(request.ranking_mode)
            item = convert.group_item(message, ranking)
            run = judge_group(
                item, settings, model.info, self._templates, ranking, max_order_gap=gap
            )
            return PlannedRun(model, run, partial(results.fill_ranking, model=model.info))

        response = judge_pb2.JudgeGroupsResponse()
        await self._answer(request.items, plan, response, timeout_s)
        return response

    async def score_steps(
        self, request: process_pb2.ScoreStepsRequest, *, timeout_s: float
    ) -> process_pb2.ScoreStepsResponse:
        """Scores the steps of responses; arguments and errors as for `judge_responses`."""
        seed = secrets.randbits(_SEED_BITS)

        def plan(message: process_pb2.StepItem) -> PlannedRun:
            model = self._models.step_model(request.settings.model)
            settings = convert.step_settings(request.settings, seed, self._config.least_mass)
            item = convert.step_item(message)
            run = score_steps(item, settings, model.info, self._templates)
            return PlannedRun(model, run, partial(results.fill_steps, model=model.info))

        response = process_pb2.ScoreStepsResponse()
        await self._answer(request.items, plan, response, timeout_s)
        return response

    async def score_self_verification(
        self, request: process_pb2.ScoreSelfVerificationRequest, *, timeout_s: float
    ) -> process_pb2.ScoreSelfVerificationResponse:
        """Scores dialogues; arguments and errors as for `judge_responses`."""
        deadline_s = time.monotonic() + timeout_s
        check_chunk(request.items, set(), self._config.max_batch_items)
        known = await self._attempts_correct(request, answer_by_s(0.0, timeout_s))
        kind = "self-verification"
        closing = self._templates.get("", kind, kind).ref

        def plan(message: process_pb2.SelfVerificationItem) -> PlannedRun:
            settings = dialogues.settings_from_proto(request.settings, self._config.least_mass)
            settings = replace(settings, template=closing)
            name = request.settings.model
            model = self._models.chooser(name) if name else None
            item = dialogues.item_from_proto(message)
            correct = known.get(message.id) or tuple(message.attempts_correct)
            if isinstance(correct, ItemFault):
                raise Unjudgeable(correct.reason, correct.message, correct.metadata)
            run = score_dialogue(item, settings, correct, model.info if model else None)
            return PlannedRun(model, run, dialogues.fill_scores)

        response = process_pb2.ScoreSelfVerificationResponse()
        left_s = max(0.0, deadline_s - time.monotonic())
        items = await self._answer(request.items, plan, response, left_s)
        scored = [item.outcome for item in items if not item.faulted]
        dialogues.fill_metrics(response.metrics, scored)
        return response

    async def _attempts_correct(
        self, request: process_pb2.ScoreSelfVerificationRequest, timeout_s: float
    ) -> dict[str, tuple[bool, ...] | ItemFault]:
        """For the dialogues that do not say so themselves."""
        found: dict[str, tuple[bool, ...] | ItemFault] = {}
        asked: dict[str, Attempts] = {}
        for message in request.items:
            if message.attempts_correct:
                continue
            try:
                convert.check_size(message)
                asked[message.id] = dialogues.attempts_of(message, served=self._answers is not None)
            except Unjudgeable as error:
                found[message.id] = error.fault
        if asked and self._answers is not None:
            verifier = request.settings.answer_verifier or dialogues.ANSWER_VERIFIER
            found.update(await self._answers.judge(asked, verifier, timeout_s))
        return found

    async def list_judge_models(
        self, request: judge_pb2.ListJudgeModelsRequest, *, timeout_s: float
    ) -> judge_pb2.ListJudgeModelsResponse:
        """The judges, the templates, and the limits."""
        del request, timeout_s
        known = {name: tests.found for name, tests in self._tests.items()}
        return listing.judge_models(
            self._models, self._templates.all(), self._config.max_batch_items, known
        )

    async def list_process_models(
        self, request: process_pb2.ListProcessModelsRequest, *, timeout_s: float
    ) -> process_pb2.ListProcessModelsResponse:
        """The models that score steps, and the limits."""
        del request, timeout_s
        return listing.process_models(self._models, self._config.max_batch_items)

    async def _answer(
        self,
        messages: Sequence[Any],
        plan: Callable[[Any], PlannedRun],
        response: Any,
        timeout_s: float,
    ) -> list[PendingJudgement]:
        """Judges a call's items, writes their results, and returns the settled items in order.

        Raises:
            CallError: the request as a whole is refused.
        """
        asks: dict[str, RequestBatcher] = {}
        shown = tracing.trail() is not None

        def admit(item: PendingJudgement, message: Any) -> None:
            item.size_bytes = message.ByteSize()
            convert.check_size(message)
            item.plan = plan(message)
            item.asks = asks.get(item.plan.model_name) or self._asks(item.plan.model)
            asks[item.plan.model_name] = item.asks
            item.asked = [] if shown else None

        return await self._service.answer(messages, response, admit, timeout_s)

    def _asks(self, model: ServedModel | None) -> RequestBatcher:
        if model is None:
            return RequestBatcher(None)
        tests = self._tests.get(model.name)
        answered = partial(self.metrics.answered, model.name)
        return RequestBatcher(model.engine, answered, tests.require if tests else None)
