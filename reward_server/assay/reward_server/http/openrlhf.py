"""OpenRLHF's remote reward model: POST /get_reward.

Request:  {"query": [text], "prompts": [text], "labels": [any]}; `query` is prompt and response,
          decoded with special tokens.
Answer:   {"rewards": [n], "scores": [n], "extra_logs": {name: [n]}}, lists as its serve_rm.py has.

The verifier comes from the URL: /get_reward?verifier=math. The response is what follows the prompt
in the query, without the end-of-turn tokens behind it. Where a tokenizer does not give the prompt
back as it was, say where the response begins: &response_after=<|im_start|>assistant%0A (what
follows its last occurrence). Nothing is guessed: a query without its prompt is refused, because an
answer read from the prompt would be paid.

A fault is never a number: the call fails with a status (429, 500, 503, 504, ...) and a problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.api.reward.v1 import reward_pb2
from assay.reward_server.http.front import Front, malformed, read_object
from assay.reward_server.http.items import make_item
from assay.reward_server.http.problems import fault_of

END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",  # DeepSeek's
)
"""Special tokens that may end a decoded response, and are no part of it."""


def read(
    body: dict[str, Any], chosen: tuple[str, str], response_after: str = ""
) -> list[reward_pb2.Item]:
    """The items of a request.

    Args:
        body: the JSON object.
        chosen: verifier and task.
        response_after: the response follows the last occurrence of this; empty: it follows the
            prompt.

    Raises:
        BadRequestError: MALFORMED_REQUEST: lists are missing or of different lengths, or a response
            cannot be told from its prompt.
    """
    queries = _list(body, "query")
    prompts, labels = _list(body, "prompts"), _list(body, "labels")
    if not queries:
        raise malformed("query must be a list with at least one text")
    for name, found in (("prompts", prompts), ("labels", labels)):
        if found and len(found) != len(queries):
            raise malformed(f"{name} has {len(found)} entries, query has {len(queries)}")
    items: list[reward_pb2.Item] = []
    for index, query in enumerate(queries):
        prompt = prompts[index] if prompts else None
        if not isinstance(query, str) or not isinstance(prompt, str | None):
            raise malformed("query and prompts must be lists of texts")
        response = _response(query, prompt, response_after)
        label = labels[index] if labels else None
        items.append(make_item(str(index), response, chosen, prompt=prompt, label=label))
    return items


def answer(judgements: Sequence[reward_pb2.Judgement]) -> dict[str, Any]:
    """The answer; a component is logged where every item has it."""
    rewards = [judgement.reward for judgement in judgements]
    parts = [{part.name: part.score for part in one.components} for one in judgements]
    shared = [name for name in parts[0] if all(name in part for part in parts)] if parts else []
    logs = {name: [part[name] for part in parts] for name in shared}
    return {"rewards": rewards, "scores": rewards, "extra_logs": logs}


def routes(front: Front) -> list[Route]:
    """/get_reward."""

    async def get_reward(request: Request) -> Response:
        after = request.query_params.get("response_after", "")
        items = read(await read_object(request), front.chosen(request), after)
        results = await front.score(request, items)
        error = fault_of(results)
        if error is not None:
            raise error
        return JSONResponse(answer([result.judgement for result in results]))

    return [Route("/get_reward", get_reward, methods=["POST"])]


def _response(query: str, prompt: str | None, response_after: str) -> str:
    if response_after:
        _, mark, response = query.rpartition(response_after)
        if not mark:
            raise malformed("a query does not hold the text of response_after")
    elif prompt:
        _, mark, response = query.partition(prompt)
        if not mark:
            raise malformed(
                "a query does not hold its prompt, so its response is not known: "
                "add ?response_after=MARK to the URL"
            )
    else:
        response = query
    return _without_end(response)


def _without_end(response: str) -> str:
    stripped = response.rstrip("\n")
    for _ in range(8):
        ended = next((token for token in END_TOKENS if stripped.endswith(token)), None)
        if ended is None:
            break
        response = stripped = stripped[: -len(ended)]
        stripped = stripped.rstrip("\n")
    return response


def _list(body: dict[str, Any], name: str) -> list[Any]:
    found = body.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise malformed(f"{name} must be a list")
    return found
