"""How each request of a judge becomes HTTP requests, by what the server offers.

Choose        token ids: /tokenize renders the dialogue and the options, /v1/completions gives the
              log-probabilities of just the tokens asked for, option by option; exact, whatever the
              options. Otherwise the listed log-probabilities of one chat completion, matched by
              text: options must be one token each.
Write         a chat completion. Under a form by `structured_outputs`, and the verdicts' share of
              the probability is then asked for where each was said.
RateDialogue  /classify, logits; or /score of prompt and response, for models that read pairs.
RateSteps     /pooling of token ids, read where each step ends.

A server that cannot go on from the beginning of an answer (`prefill`) reads in the last message how
to begin, or, for Choose, to answer with one of the options at once. Where a thought is opened, chat
templates rewrite an answer that was begun: then the open dialogue is asked for in tokens, and what
`thoughts` puts behind it is added.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.genrm.engines import fitting, thoughts
from assay.genrm.engines.base import (
    Choose,
    Chosen,
    EngineError,
    Prompt,
    PromptPiece,
    Rated,
    StepsRated,
    TokenCounts,
    Write,
    Written,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.forms import TextForm
from assay.genrm.engines.openai import answers, texts
from assay.genrm.engines.openai.fitting import TooLong
from assay.genrm.engines.openai.offer import Offer
from assay.genrm.engines.openai.transport import HttpTransport, Refused
from assay.genrm.engines.options import Ids, branches, totals, verdict_mass
from assay.genrm.engines.steps import chance
from assay.kit.reasons import Reason

_STOPS = 4
_ONE_OF = "Answer with exactly one of these, and nothing else: {}"
_SO_FAR = "You have written so far:"
_BEGIN = "Begin your answer with exactly this, and go on from there:"
_OPTIONS_KEPT = 4096
_STEP_TOKEN = "<extra_0>"  # noqa: S105  # a token of a vocabulary, Qwen2.5-Math-PRM's

Json = dict[str, Any]
Said = dict[str, str]


class ServerClient:
    """Speaks to one server about one model; context_tokens is 0 if only the server knows."""

    def __init__(
        self, transport: HttpTransport, config: EngineConfig, offer: Offer, context_tokens: int
    ) -> None:
        self._transport = transport
        self._config = config
        self._model = config.path
        self._offer = offer
        self._context = context_tokens
        special = [token for token in offer.special if texts.breakable(token)]
        self._pattern = texts.lookalikes(special)
        self._own_pattern = texts.lookalikes(special, tags=False)
        self._options: dict[str, Ids] = {}
        self._limit = "max_tokens"

    def settle(self, prompt: Prompt) -> Prompt:
        """A long prompt with its data broken up; may run in a thread, while others are asked."""
        return texts.settled(prompt, self._pattern)

    async def choose(self, prompt: Prompt, request: Choose, cut: bool) -> Chosen:
        """Log-probabilities of the options."""
        if self._offer.tokens:
            return await self._choose_by_ids(prompt, request.options, cut)
        return await self._choose_by_text(prompt, request.options, cut)

    async def write(self, prompt: Prompt, request: Write, cut: bool) -> Written:
        """A chat completion, or a text completion where there is no chat."""
        stop = [word for word in request.stop if word] if request.form is None else []
        begun = self._begun(prompt)
        hint = f"{_BEGIN}\n{begun}" if begun else ""
        thinks = self._ended(begun) is not None
        ids = await self._ids(prompt) if thinks else []
        body = {
            **({"model": self._model, "prompt": ids} if thinks else self._rendered(prompt, hint)),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
        }
        if stop:
            body["stop"] = stop if self._offer.continues else stop[:_STOPS]
        if self._offer.continues:
            # Or the server takes what the model's generation_config.json says.
            body |= {"repetition_penalty": 1.0, "top_k": -1, "min_p": 0.0}
        if thinks:
            self._check(ids, request.max_tokens)
            body["skip_special_tokens"] = False  # the end of a thought may be one
        if request.form is not None:
            body["structured_outputs"] = {"regex": request.form.pattern}
        try:
            answer = await self._speak(body)
        except Refused:
            await self._measure(prompt, request.max_tokens)
            raise
        written = answers.written(answer, stop, chat="messages" in body, cut=cut)
        if request.form is not None:
            return await self._with_share(written, prompt, request.form)
        if begun and self._offer.chat and not self._offer.continues:
            text = written.text.removeprefix(begun)
            return Written(text, written.finish, written.tokens, cut)
        return written

    async def _with_share(self, written: Written, prompt: Prompt, form: TextForm) -> Written:
        """The least share of the verdicts where each was said, 0 for none."""
        lead = (*prompt.lead, PromptPiece(prompt.prefill))
        asked = [
            (replace(prompt, lead=(*lead, PromptPiece(before, trusted=False)), prefill=""), options)
            for before, options in form.choices(written.text)
        ]
        found = await asyncio.gather(
            *(self._choose_by_ids(one, options, cut=False) for one, options in asked)
        )
        shares = (
            verdict_mass(options, answer.logprobs)
            for (_, options), answer in zip(asked, found, strict=True)
        )
        more = sum(answer.tokens.completion for answer in found)
        counts = replace(written.tokens, completion=written.tokens.completion + more)
        return replace(written, mass=min(shares, default=0.0), tokens=counts)

    async def rate(self, prompt: Prompt, cut: bool) -> Rated:
        """The head's logits on the dialogue."""
        body: Json = {"model": self._model, "use_activation": False}
        path, said = "/classify", self._said(prompt)
        if self._offer.scores:
            path = "/score"
            body |= {"text_1": texts.question(said[:-1]), "text_2": said[-1]["content"]}
        elif self._offer.chat:
            body |= {"messages": said, "add_generation_prompt": False}
        else:
            body["input"] = texts.plain(said, "")
        answer = await self._transport.post(path, body)
        return Rated(answers.head_row(answer), answers.counts(answer), cut)

    async def rate_steps(self, prompt: Prompt, steps: Sequence[str]) -> StepsRated:
        """The chance that each step is right, by the head at its end."""
        ids, positions = await self._steps(prompt, steps)
        self._check(ids, 0)
        body = {
            "model": self._model,
            "input": ids,
            "task": "token_classify",
            "use_activation": False,
        }
        answer = await self._transport.post("/pooling", body)
        rows = answers.data(answer).get("data")
        if not isinstance(rows, list):
            raise answers.malformed("no logits")
        if len(rows) == len(ids):
            rows = [rows[at] for at in positions]
        elif len(rows) != len(positions):
            raise answers.malformed(f"{len(rows)} rows of logits for {len(ids)} tokens")
        good = self._config.good_label
        return StepsRated(
            tuple(chance(answers.row(row), good) for row in rows), answers.counts(answer)
        )

    # Choose

    async def _choose_by_ids(self, prompt: Prompt, options: Sequence[str], cut: bool) -> Chosen:
        ids, choices = await asyncio.gather(
            self._ids(prompt), asyncio.gather(*(self._option(option) for option in options))
        )
        if len(set(choices)) < len(choices):
            raise EngineError(
                Reason.INVALID_PARAMETER,
                f"the options {list(options)!r} are not different texts to the server's tokenizer",
            )
        self._check(ids, max(map(len, choices)))
        asked = branches(choices)
        found = await asyncio.gather(
            *(self._next(ids, before, wanted) for before, wanted in asked.items())
        )
        logprobs = totals(choices, dict(zip(asked, (one for one, _ in found), strict=True)))
        return _chosen(logprobs, _together([counts for _, counts in found], len(ids)), cut)

    async def _next(
        self, ids: list[int], before: Ids, wanted: Ids
    ) -> tuple[Mapping[int, float], TokenCounts]:
        body: Json = {
            "model": self._model,
            "prompt": [*ids, *before],
            "max_tokens": 1,
            "temperature": 1.0,
            "logprobs": self._offer.top,
            "return_tokens_as_token_ids": True,
        }
        if self._offer.picks:
            body |= {"logprobs": len(wanted), "logprob_token_ids": list(wanted)}
        answer = await self._transport.post("/v1/completions", body)
        top = answers.tokens_of(answers.top_of_completion(answer))
        found = {token: top[token] for token in wanted if token in top}
        return answers.complete(found, wanted, tuple(top.values())), answers.counts(answer)

    async def _choose_by_text(self, prompt: Prompt, options: Sequence[str], cut: bool) -> Chosen:
        goes_on = not self._offer.chat or self._offer.continues
        begun = self._begun(prompt)
        hint = "" if goes_on else _ONE_OF.format(" / ".join(o.strip() for o in options))
        if hint and begun:
            hint = f"{_SO_FAR}\n{begun}\n\n{hint}"
        body = {**self._rendered(prompt, hint), "max_tokens": 1, "temperature": 1.0}
        if self._offer.chat:
            body |= {"logprobs": True, "top_logprobs": self._offer.top}
            answer = await self._speak(body)
            top = answers.top_of_chat(answer)
        else:
            answer = await self._speak({**body, "logprobs": self._offer.top})
            top = answers.top_of_completion(answer)
        found = answers.by_text(top, options, anyhow=not (goes_on and begun))
        every = answers.complete(found, options, tuple(top.values()))
        return _chosen(tuple(every[option] for option in options), answers.counts(answer), cut)

    # Tokens

    async def _ids(self, prompt: Prompt) -> list[int]:
        if not self._offer.chat:
            return await self._tokens(self._plain(prompt), special=True)
        begun = self._begun(prompt)
        thinks, said = begun.startswith(thoughts.OURS), self._ended(begun)
        if said is None:
            body: Json = {"model": self._model, **self._messages(prompt)}
            return _token_list(await self._transport.post("/tokenize", body))
        body = {
            "model": self._model,
            "messages": self._said(prompt),
            "chat_template_kwargs": thoughts.switches(begun),
        }
        ids = _token_list(await self._transport.post("/tokenize", body))
        end = list(await self._option(self._offer.ends[thinks]))
        if ids[-len(end) :] != end:
            raise EngineError(
                Reason.ENGINE_FAILED,
                "the server's chat template ends one dialogue otherwise than another, so where its "
                "thoughts begin is not known: use the embedded engine or vLLM in the process",
            )
        return [*ids[: -len(end)], *await self._tokens(said)]

    def _ended(self, begun: str) -> str | None:
        """The end of the open dialogue and the answer begun; None where the server may go on."""
        thinks = begun.startswith(thoughts.OURS)
        end = self._offer.ends[thinks]
        said = thoughts.continued(end, begun, "".join(self._offer.ends))  # for the family's tags
        plain = said == end + begun and not any(mark in end for mark in thoughts.MARKS)
        return said if end and (thinks or not plain) else None

    async def _tokens(self, text: str, *, special: bool = False) -> list[int]:
        body = {"model": self._model, "prompt": text, "add_special_tokens": special}
        return _token_list(await self._transport.post("/tokenize", body))

    async def _option(self, text: str) -> Ids:
        if text not in self._options:
            ids = tuple(await self._tokens(text))
            if not ids:
                raise answers.malformed(f"no tokens for the option {text!r}")
            while len(self._options) >= _OPTIONS_KEPT:
                self._options.pop(next(iter(self._options)))
            self._options[text] = ids
        return self._options[text]

    async def _steps(self, prompt: Prompt, steps: Sequence[str]) -> tuple[list[int], list[int]]:
        mark = await self._step_token()
        if mark is not None:
            steps = [step.rstrip("\r\n") or step for step in steps]
        safe = texts.harmless(
            tuple(PromptPiece(step, trusted=False) for step in steps), self._pattern
        )
        ids, *cut = await asyncio.gather(
            self._ids(prompt), *(self._tokens(piece.text) for piece in safe)
        )
        if not cut or not all(cut):
            raise EngineError(
                Reason.INVALID_PARAMETER,
                "a response to be scored by steps needs at least one step, and each step a token",
            )
        positions = []
        for tokens in cut:
            ids.extend(tokens)
            if mark is not None:
                ids.append(mark)
            positions.append(len(ids) - 1)
        return ids, positions

    async def _step_token(self) -> int | None:
        """None where steps are read at their ends."""
        layout, text = self._config.step_layout, self._config.step_token
        if layout == "step-end":
            return None
        ids = await self._option(text or _STEP_TOKEN)
        if len(ids) == 1:
            return ids[0]
        if layout == "auto" and not text:
            return None
        raise EngineError(
            Reason.INVALID_PARAMETER,
            f"step_token {text or _STEP_TOKEN!r} is {len(ids)} tokens to this model: name one of "
            "its own",
        )

    async def _measure(self, prompt: Prompt, reserve: int) -> None:
        if self._offer.tokens:
            self._check(await self._ids(prompt), reserve)

    def _check(self, ids: Sequence[int], reserve: int) -> None:
        excess = len(ids) + reserve - self._context
        if self._context and excess > 0:
            raise TooLong(
                f"{len(ids)} tokens and {reserve} for the answer, of {self._context}",
                len(ids),
                excess,
                exact=True,
            )

    # Bodies

    def _rendered(self, prompt: Prompt, hint: str = "") -> Json:
        if not self._offer.chat:
            return {"model": self._model, "prompt": self._plain(prompt)}
        return {"model": self._model, **self._messages(prompt, hint)}

    def _messages(self, prompt: Prompt, hint: str = "") -> Json:
        """`hint` is for a server that cannot continue an answer."""
        said, begun = self._said(prompt), self._begun(prompt)
        if not self._offer.continues:
            return {"messages": _hinted(said, hint)}
        # A template that knows a thinking mode: verdicts are read where the answer begins.
        body: Json = {"messages": said, "chat_template_kwargs": thoughts.switches(begun)}
        if begun:
            said.append({"role": "assistant", "content": begun})
            body |= {"add_generation_prompt": False, "continue_final_message": True}
        return body

    def _said(self, prompt: Prompt) -> list[dict[str, str]]:
        said = texts.chat(prompt, self._pattern)
        return said if self._offer.system else fitting.without_system(said)

    def _begun(self, prompt: Prompt) -> str:
        return texts.begun(prompt, self._pattern, self._own_pattern)

    def _plain(self, prompt: Prompt) -> str:
        return texts.plain(self._said(prompt), self._begun(prompt))

    async def _speak(self, body: Json) -> Json:
        path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
        tokens = body.pop("max_tokens")
        try:
            return await self._transport.post(path, {**body, self._limit: tokens})
        except Refused as refused:
            if self._limit != "max_tokens" or "max_completion_tokens" not in refused.message:
                raise
            self._limit = "max_completion_tokens"
        return await self._transport.post(path, {**body, self._limit: tokens})


def _hinted(said: list[Said], hint: str) -> list[Said]:
    if not hint:
        return said
    if said[-1]["role"] != "user":
        return [*said, {"role": "user", "content": hint}]
    return [*said[:-1], {"role": "user", "content": f"{said[-1]['content']}\n\n{hint}"}]


def _token_list(answer: Json) -> list[int]:
    found = answer.get("tokens")
    if not isinstance(found, list) or not all(type(one) is int for one in found):
        raise answers.malformed("no token ids")
    return found


def _chosen(logprobs: tuple[float, ...], counts: TokenCounts, cut: bool) -> Chosen:
    if all(value == -math.inf for value in logprobs):
        raise answers.not_finite("every option's log-probability")
    return Chosen(logprobs, counts, cut)


def _together(parts: Sequence[TokenCounts], prompt: int) -> TokenCounts:
    """Of several questions about one prompt: the prompt counts once."""
    cached = min((part.cached for part in parts), default=0)
    return TokenCounts(prompt, min(prompt, cached), sum(part.completion for part in parts))
