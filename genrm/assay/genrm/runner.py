"""The runner: the methods of judge.proto and process.proto, on the kit's batch service."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from assay.api.judge.v1 import judge_pb2
from assay.api.process.v1 import process_pb2
from assay.genrm import convert, dialogues, listing, results
from assay.genrm.accounts import Accounts, BusyClock, CallBill
from assay.genrm.answers import AnswerVerifier, Attempts
from assay.genrm.config import RunnerConfig, prices_of
from assay.genrm.domain import JudgePanel
from assay.genrm.driving import RequestBatcher
from assay.genrm.handler import JudgeHandler, PendingJudgement, PlannedRun
from assay.genrm.judges import (
    judge_by_ensemble,
    judge_group,
    judge_pair,
    judge_response,
    judge_rubric,
)
from assay.genrm.judges.rubrics.judging import RubricJudges
from assay.genrm.metrics import JudgeMetrics
from assay.genrm.models import Models, ServedModel
from assay.genrm.reloading import reloadables
from assay.genrm.self_test import SelfTests
from assay.genrm.self_verification import score_dialogue
from assay.genrm.sharing import SharedAnswers
from assay.genrm.steps import score_steps
from assay.genrm.templates import load_templates
from assay.kit import tracing
from assay.kit.batch.coroutines import CoroutinePool
from assay.kit.batch.requests import answer_by_s, check_chunk
from assay.kit.batch.service import BatchService
from assay.kit.calls import tenant_label_var, tenant_var
from assay.kit.faults import ItemFault, Unjudgeable

_SEED_BITS = 62


class Runner:
    """Judges items. Belongs to the event loop that starts it.

    The models are by default those of the settings. Without `answers` callers must say which
    attempts are right.

    Attributes:
        reloadables: the weights that are looked at while it runs.

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
        self._tests: dict[ServedModel, SelfTests] = {}
        self._shared: dict[ServedModel, SharedAnswers] = {}
        self._clocks: dict[ServedModel, BusyClock] = {}
        self._accounts = Accounts(config.models.budget)
        self._retiring: set[asyncio.Task[None]] = set()
        self.reloadables = reloadables(config.models, self._renew)
        self._start_ended = asyncio.Event()
        self.metrics = JudgeMetrics(by_run="run" in config.metric_labels)
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
            for model in self._models:
                self._begin_tests(model)
            at_work = {
                model.name: model.config.max_concurrent * len(model.config.places)
                for model in self._models
            }
            # Runs that ask nobody have a pool of their own, without a name.
            pools = self._handler.pools
            for name, items in {**at_work, "": config.queue_items}.items():
                pools[name] = CoroutinePool(items, config.queue_items, config.queue_mb * 2**20)
            engines = {model.name: model.engine for model in self._models}
            for name, pool in pools.items():
                self.metrics.watch(name, pool, engines.get(name))
        finally:
            self._start_ended.set()

    def _begin_tests(self, model: ServedModel) -> None:
        if self._config.self_test and model.judges and model.config.known != "none":
            tests = SelfTests(model, self._templates, self._config.least_mass)
            self._tests[model] = tests
            tests.begin()

    async def _renew(self, name: str, digest: str) -> str:
        """Serves a model's folder as it is now; see `reloading`."""
        await self.started()
        before = self._models.served(name).info.revision
        if digest in re.split("[+-]", before):
            return f"weights of {name}: still {before}"
        old = await self._models.renew(name)
        fresh = self._models.served(name)
        self._begin_tests(fresh)
        self.metrics.watch(name, self._handler.pools[name], fresh.engine)
        task = asyncio.create_task(self._retire(old))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)
        return f"weights of {name}: {fresh.info.revision}, in place of {before}"

    async def _retire(self, old: ServedModel) -> None:
        await self._models.end(old)
        self._shared.pop(old, None)
        self._clocks.pop(old, None)
        if tests := self._tests.pop(old, None):
            await tests.close()

    async def started(self) -> None:
        """Returns when `start` has ended, well or not."""
        await self._start_ended.wait()

    async def close(self) -> None:
        """Ends every engine. May be called at any time, and more than once."""
        for task in self._retiring:
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
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
            panel = self._panel(request)
            settings = convert.judge_settings(request.settings, seed, self._config.least_mass)
            item = convert.judge_item(message)
            if len(panel.models) > 1:
                run = judge_by_ensemble(item, settings, panel, self._templates)
            else:
                run = judge_response(item, settings, panel.models[0], self._templates)
            model = self._models.judge(panel.models[0].name)
            return PlannedRun(model, run, partial(results.fill_judgement, model=panel.judge))

        response = judge_pb2.JudgeResponsesResponse()
        await self._answer(request, plan, response, timeout_s)
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
        await self._answer(request, plan, response, timeout_s)
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
            rounds = convert.rounds(request, ranking)
            item = convert.group_item(message, ranking)
            run = judge_group(
                item,
                settings,
                model.info,
                self._templates,
                ranking,
                rounds=rounds,
                max_order_gap=gap,
            )
            return PlannedRun(model, run, partial(results.fill_ranking, model=model.info))

        response = judge_pb2.JudgeGroupsResponse()
        await self._answer(request, plan, response, timeout_s)
        return response

    async def judge_rubrics(
        self, request: judge_pb2.JudgeRubricsRequest, *, timeout_s: float
    ) -> judge_pb2.JudgeRubricsResponse:
        """Judges responses by rubrics; arguments and errors as for `judge_responses`."""
        seed = secrets.randbits(_SEED_BITS)
        orders = convert.orders(request.items, request.rubric_settings)

        def plan(message: judge_pb2.RubricItem) -> PlannedRun:
            panel = self._panel(request)
            rules = convert.rubric_settings(request.rubric_settings)
            settings = convert.judge_settings(request.settings, seed, self._config.least_mass)
            second = None
            if rules.second_model:
                second = self._models.judge(rules.second_model).info
            bench = RubricJudges(panel, settings, self._templates, orders[message.id], second)
            run = judge_rubric(convert.rubric_item(message), rules, bench)
            model = self._models.judge(panel.models[0].name)
            return PlannedRun(model, run, partial(results.fill_rubric, model=panel.judge))

        response = judge_pb2.JudgeRubricsResponse()
        await self._answer(request, plan, response, timeout_s)
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
        await self._answer(request, plan, response, timeout_s)
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
        items = await self._answer(request, plan, response, left_s)
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
        served = list(self._models)
        known = {one.name: self._tests[one].found for one in served if one in self._tests}
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
        request: Any,
        plan: Callable[[Any], PlannedRun],
        response: Any,
        timeout_s: float,
    ) -> list[PendingJudgement]:
        """Judges a call's items, writes their results, and returns the settled items in order.

        All of them are judged by the models of now, whatever is served before the call ends.

        Raises:
            CallError: the request as a whole is refused.
        """
        asks: dict[ServedModel | None, RequestBatcher] = {}
        served = {model.name: model for model in self._models}
        for model in served.values():
            self._models.hold(model)
        shown = tracing.trail() is not None

        def admit(item: PendingJudgement, message: Any) -> None:
            item.size_bytes = message.ByteSize()
            convert.check_size(message)
            item.plan = plan(message)
            item.asks = self._asks(item.plan.model, request, asks, served)
            item.asked = [] if shown else None

        try:
            return await self._service.answer(request.items, response, admit, timeout_s)
        finally:
            for model in served.values():
                self._models.release(model)

    def _panel(
        self, request: judge_pb2.JudgeResponsesRequest | judge_pb2.JudgeRubricsRequest
    ) -> JudgePanel:
        """Who judges a call.

        Raises:
            Unjudgeable: INVALID_PARAMETER, UNKNOWN_MODEL.
        """
        return convert.panel(
            request.ensemble, request.settings, lambda name: self._models.judge(name).info
        )

    def _asks(
        self,
        model: ServedModel | None,
        request: Any,
        asks: dict[ServedModel | None, RequestBatcher],
        served: Mapping[str, ServedModel],
    ) -> RequestBatcher:
        """The requests of a call to a model, which is one of those that the call holds.

        Raises:
            Unjudgeable: INVALID_LABEL: the run's name is too long.
        """
        if model not in asks:
            settings = request.settings
            tests = self._tests.get(model) if model else None
            asks[model] = RequestBatcher(
                model.engine if model else None,
                partial(self.metrics.answered, model.name if model else ""),
                tests.require if tests else None,
                lambda other: self._asks(
                    served[self._models.judge(other).name], request, asks, served
                ),
                bill=self._bill(model, convert.run_of(settings)) if model else None,
                shared=self._answers_of(model) if model else None,
                seeded="seed" in settings.DESCRIPTOR.fields_by_name and settings.HasField("seed"),
            )
        return asks[model]

    def _bill(self, model: ServedModel, run: str) -> CallBill:
        paid = partial(self.metrics.paid, model.name, tenant_label_var.get(), run)
        prices, clock = prices_of(model.config), self._clocks.setdefault(model, BusyClock())
        return CallBill(self._accounts, prices, clock, tenant_var.get(), run, paid)

    def _answers_of(self, model: ServedModel) -> SharedAnswers:
        shared = self._shared.get(model)
        if shared is None:
            count = partial(self.metrics.shared, model.name)
            shared = SharedAnswers(lambda: model.info, self._config.cache_entries, count)
            self._shared[model] = shared
        return shared
