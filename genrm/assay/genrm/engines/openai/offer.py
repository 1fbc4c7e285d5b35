"""What a server can do, found by small requests at the start.

Only answers count: log-probabilities are offered when they came, raw logits when they differ from
activated ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from assay.genrm.engines import thoughts
from assay.genrm.engines.base import Capability, EngineError
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.openai import answers
from assay.genrm.engines.openai.transport import Absent, HttpTransport, Refused
from assay.kit.errors import ConfigError, StartupError

# Those that go on with an assistant message that is not finished, when asked to.
_CONTINUE = frozenset({"vllm", "sglang"})
_TOP = (20, 5)
_HELLO = [{"role": "user", "content": "Say A."}]
_SAID = [*_HELLO, {"role": "assistant", "content": "A"}]
_SHOWN_MODELS = 20

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """What was found.

    Attributes:
        capabilities: the requests that can be answered.
        owner: "vllm", "sglang", ..., by /v1/models; empty if unknown.
        context_tokens: by /v1/models; 0 if unknown.
        chat: the server renders dialogues; otherwise we write plain text.
        tokens: it tokenises, and completes token ids.
        picks: it gives the log-probabilities of named tokens.
        top: how many of the likeliest tokens it lists.
        special: its special tokens, if known.
        system: its chat template takes a system message.
        ends: how a dialogue ends that is open for the assistant, without thinking and with it, as
            its chat template writes it; empty if unknown.
        forms: it holds a text to a regular expression.
        scores: a scalar head is asked by /score.
    """

    capabilities: frozenset[Capability]
    owner: str = ""
    context_tokens: int = 0
    chat: bool = True
    tokens: bool = False
    picks: bool = False
    top: int = 0
    special: tuple[str, ...] = ()
    system: bool = True
    ends: tuple[str, str] = ("", "")
    forms: bool = False
    scores: bool = False

    @property
    def continues(self) -> bool:
        """Goes on with an assistant's message that was begun."""
        return self.owner in _CONTINUE


async def look(transport: HttpTransport, config: EngineConfig) -> Offer:
    """Asks the server.

    Raises:
        ConfigError: it does not serve the model.
        StartupError: it can do nothing that we need, or not what `head` asks for.
        EngineError: it failed.
    """
    owner, context = await _model(transport, config.path)
    chat, tokens = await _tokenizer(transport, config.path)
    offer = Offer(frozenset(), owner, context, chat, tokens, special=await _special(transport))
    if config.head in ("auto", "generative"):
        found = await _generative(transport, config.path, offer)
        if found is not None:
            return found
    if config.head in ("auto", "scalar"):
        found = await _scalar(transport, config, offer)
        if found is not None:
            return found
    if config.head in ("auto", "step") and tokens and await _pools(transport, config.path):
        system = not chat or await _takes_system(transport, "/tokenize", config.path)
        return replace(offer, capabilities=frozenset({"rate-steps"}), system=system)
    raise StartupError(
        f"the server offers no route for {config.path!r} with head {config.head!r}: tried "
        "/v1/chat/completions and /v1/completions (generative), /classify and /score (scalar), "
        "/pooling with /tokenize (step)"
    )


async def _model(transport: HttpTransport, name: str) -> tuple[str, int]:
    try:
        listed = (await transport.get("/v1/models")).get("data")
    except (Absent, Refused):
        return "", 0
    models = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    for model in models:
        if model.get("id") == name:
            length = model.get("max_model_len")
            return str(model.get("owned_by", "")), length if isinstance(length, int) else 0
    if models:
        names = ", ".join(sorted(str(one.get("id")) for one in models)[:_SHOWN_MODELS])
        raise ConfigError(f"the server does not serve {name!r}; it serves {names}")
    return "", 0


async def _tokenizer(transport: HttpTransport, name: str) -> tuple[bool, bool]:
    """Whether the server has a chat template (believed until refused), and tokenises dialogues."""
    text = {"model": name, "prompt": "A", "add_special_tokens": False}
    if await _ids(transport, text) is None:
        return True, False
    if await _ids(transport, {"model": name, "messages": _HELLO}) is not None:
        return True, True
    # Either it has no chat template, or its /tokenize takes no dialogues; a chat will tell.
    return False, True


async def _ids(transport: HttpTransport, body: Json) -> list[int] | None:
    try:
        found = (await transport.post("/tokenize", body)).get("tokens")
    except (Refused, EngineError):
        return None
    return found if isinstance(found, list) and found else None


async def _special(transport: HttpTransport) -> tuple[str, ...]:
    try:
        table = (await transport.get("/tokenizer_info")).get("added_tokens_decoder")
    except (Refused, EngineError):
        return ()
    entries = table.values() if isinstance(table, dict) else ()
    return tuple(
        entry["content"]
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("content"), str)
    )


async def _generative(transport: HttpTransport, name: str, offer: Offer) -> Offer | None:
    tops = await _top_of_chat(transport, name)
    if offer.tokens:
        listed = await _completes_ids(transport, name)
        # A chat that /tokenize does not render is a server whose ids are of no use to us.
        if listed is not None and offer.chat == (tops is not None):
            return await _writer(transport, name, replace(offer, picks=listed[0], top=listed[1]))
    if tops is not None:
        return await _writer(transport, name, replace(offer, chat=True, tokens=False, top=tops))
    tops = await _top_of_completion(transport, name)
    if tops is None:
        return None
    return await _writer(transport, name, replace(offer, chat=False, tokens=False, top=tops))


async def _writer(transport: HttpTransport, name: str, offer: Offer) -> Offer:
    capabilities: set[Capability] = {"write", "choose"} if offer.top else {"write"}
    path = "/v1/chat/completions"
    system = not offer.chat or await _takes_system(transport, path, name)
    offer = replace(offer, capabilities=frozenset(capabilities), system=system)
    if not (offer.tokens and offer.continues):
        return offer
    ends = [await _end(transport, name, begun) for begun in ("", thoughts.OURS)]
    forms = await _holds(transport, name)
    return replace(offer, ends=(ends[0], ends[1]), forms=forms)


async def _end(transport: HttpTransport, name: str, begun: str) -> str:
    """How a dialogue ends that is open for an answer begun so; empty if unknown."""
    body = {"messages": _HELLO, "chat_template_kwargs": thoughts.switches(begun)}
    ids = await _ids(transport, {"model": name, **body})
    try:
        said = await transport.post("/detokenize", {"model": name, "tokens": ids or []})
    except (Refused, EngineError):
        return ""
    text = said.get("prompt")
    end = text.rpartition("Say A.")[2] if isinstance(text, str) else ""
    again = await _ids(transport, {"model": name, "prompt": end, "add_special_tokens": False})
    # Told from what was said by the tokens themselves, or not at all.
    return end if again and ids and ids[-len(again) :] == again else ""


async def _holds(transport: HttpTransport, name: str) -> bool:
    """Whether it knows `structured_outputs`, as vLLM does: a text of an unlikely form is one."""
    body = {
        "model": name,
        "prompt": "A",
        "max_tokens": 16,
        "temperature": 0.0,
        "structured_outputs": {"regex": "(?:q7j)"},
    }
    try:
        return answers.choice(await transport.post("/v1/completions", body)).get("text") == "q7j"
    except (Refused, EngineError):
        return False


async def _takes_system(transport: HttpTransport, path: str, name: str) -> bool:
    messages = [{"role": "system", "content": "Be brief."}, *_HELLO]
    body: Json = {"model": name, "messages": messages}
    if path == "/v1/chat/completions":
        body["max_tokens"] = 1
    try:
        await transport.post(path, body)
    except Refused as refused:
        return "max_completion_tokens" in refused.message
    return True


async def _completes_ids(transport: HttpTransport, name: str) -> tuple[bool, int] | None:
    """Whether it picks, and how many it lists; None if it does not complete ids."""
    ids = await _ids(transport, {"model": name, "prompt": "A B", "add_special_tokens": False})
    for top in _TOP if ids else ():
        body = {"model": name, "prompt": ids, "max_tokens": 1, "return_tokens_as_token_ids": True}
        try:
            body |= {"logprobs": top}
            answers.tokens_of(
                answers.top_of_completion(await transport.post("/v1/completions", body))
            )
        except Refused:
            continue
        except EngineError:
            return None
        return await _picks(transport, body, (ids or [0])[0]), top
    return None


async def _picks(transport: HttpTransport, body: Json, token: int) -> bool:
    body = {**body, "logprobs": 1, "logprob_token_ids": [token]}
    try:
        found = answers.top_of_completion(await transport.post("/v1/completions", body))
        return token in answers.tokens_of(found) and len(found) <= 2
    except (Refused, EngineError):
        return False


async def _top_of_chat(transport: HttpTransport, name: str) -> int | None:
    """How many log-probabilities a chat gives, 0 for none; None if there is no chat."""
    for top in _TOP:
        body = {
            "model": name,
            "messages": _HELLO,
            "max_tokens": 1,
            "logprobs": True,
            "top_logprobs": top,
        }
        try:
            answers.top_of_chat(await transport.post("/v1/chat/completions", body))
        except Refused:
            continue
        except Absent:
            return None
        except EngineError as error:
            if "log-probabilities" not in error.message:
                raise
            return 0
        return top
    return await _writes(
        transport, "/v1/chat/completions", {"model": name, "messages": _HELLO, "max_tokens": 1}
    )


async def _top_of_completion(transport: HttpTransport, name: str) -> int | None:
    for top in _TOP:
        body = {"model": name, "prompt": "A", "max_tokens": 1, "logprobs": top}
        try:
            answers.top_of_completion(await transport.post("/v1/completions", body))
        except Refused:
            continue
        except Absent:
            return None
        except EngineError as error:
            if "log-probabilities" not in error.message:
                raise
            return 0
        return top
    return await _writes(
        transport, "/v1/completions", {"model": name, "prompt": "A", "max_tokens": 1}
    )


async def _writes(transport: HttpTransport, path: str, body: Json) -> int | None:
    """0 if it writes without log-probabilities, None if it does not write."""
    try:
        answers.choice(await transport.post(path, body))
    except (Refused, Absent):
        return None
    return 0


async def _scalar(transport: HttpTransport, config: EngineConfig, offer: Offer) -> Offer | None:
    name, route = config.path, config.head_route
    able = replace(offer, capabilities=frozenset({"rate"}))
    said: Json = {"model": name, **({"messages": _SAID} if offer.chat else {"input": "A"})}
    if route != "score" and await _gives_logits(transport, "/classify", said):
        system = not offer.chat or await _takes_system(transport, "/classify", name)
        return replace(able, system=system)
    pair: Json = {"model": name, "text_1": "Say A.", "text_2": "A"}
    if route != "classify" and await _gives_logits(transport, "/score", pair):
        return replace(able, scores=True)
    return None


async def _gives_logits(transport: HttpTransport, path: str, body: Json) -> bool:
    """Whether there is such a route, and it gives logits.

    Raises:
        StartupError: it gives probabilities, or similarities, only.
    """
    try:
        raw = await transport.post(path, {**body, "use_activation": False})
        activated = await transport.post(path, {**body, "use_activation": True})
    except (Refused, Absent):
        return False
    if all(map(math.isclose, answers.head_row(raw), answers.head_row(activated))):
        raise StartupError(
            f"the server's {path} gives the same with and without use_activation, where logits "
            "were asked for: use a newer vLLM, a model with a classification head (an embedding "
            "model gives similarities), or another engine"
        )
    return True


async def _pools(transport: HttpTransport, name: str) -> bool:
    ids = await _ids(transport, {"model": name, "prompt": "A B", "add_special_tokens": False})
    body = {"model": name, "input": ids, "task": "token_classify", "use_activation": False}
    try:
        found = answers.data(await transport.post("/pooling", body)).get("data")
    except (Refused, Absent):
        return False
    return isinstance(found, list)
