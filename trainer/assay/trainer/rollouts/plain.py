"""Groups as plain containers and back, for checkpoints.

Only what torch.load reads with weights_only=True. A draw is saved as its number, since the stream
of prompts can draw it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from assay.clients import Appeal, Component, Fault, Judgement, Result, Span
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.rollouts.exchange import Transcript
from assay.trainer.rollouts.types import Acted, ActedTurn, Group, PolicyTurn, Rollout

Plain = dict[str, Any]


def group_to_plain(group: Group) -> Plain:
    """One group, not empty."""
    return {
        "draw": group[0].request.draw.number,
        "rollouts": [rollout_to_plain(rollout) for rollout in group],
    }


def group_from_plain(saved: Mapping[str, Any], draw: Callable[[int], Draw]) -> Group:
    """Inverse of `group_to_plain`; `draw` gives the draw of a number."""
    its_draw = draw(saved["draw"])
    return tuple(rollout_from_plain(rollout, its_draw) for rollout in saved["rollouts"])


def rollout_to_plain(rollout: Rollout) -> Plain:
    """One rollout, without its draw."""
    return {
        "index": rollout.request.index,
        "policy_step": rollout.policy_step,
        "response": response_to_plain(rollout.response),
        "result": result_to_plain(rollout.result),
        "turns": [_turn_to_plain(turn) for turn in rollout.turns],
        **({} if rollout.acted is None else _acted_to_plain(rollout, rollout.acted)),
    }


def _acted_to_plain(rollout: Rollout, acted: Acted) -> Plain:
    """What an episode did, and its own prompt, which its draw does not know."""
    plain = _lists(asdict(replace(acted, record={})))
    return {
        "prompt_ids": list(rollout.request.draw.prompt_ids),
        "acted": {**plain, "record": json.dumps(acted.record)},
    }


def _acted_from_plain(saved: Mapping[str, Any]) -> Acted:
    return Acted(
        **{
            **saved,
            "turns": tuple(ActedTurn(**turn) for turn in saved["turns"]),
            "contexts": tuple(saved["contexts"]),
            "record": json.loads(saved["record"]),
        }
    )


def rollout_from_plain(saved: Mapping[str, Any], draw: Draw) -> Rollout:
    """Inverse of `rollout_to_plain`."""
    acted = saved.get("acted")
    if acted is not None:
        draw = replace(draw, prompt_ids=tuple(saved["prompt_ids"]))
    return Rollout(
        Request(draw, saved["index"]),
        response_from_plain(saved["response"]),
        result_from_plain(saved["result"]),
        saved["policy_step"],
        tuple(_turn_from_plain(turn) for turn in saved.get("turns", ())),
        None if acted is None else _acted_from_plain(acted),
    )


def response_to_plain(response: Response) -> Plain:
    """One response, whole or unfinished."""
    return dict(_lists(asdict(response)))


def response_from_plain(saved: Mapping[str, Any]) -> Response:
    """Inverse of `response_to_plain`."""
    logprobs = saved["logprobs"]
    return Response(
        ids=tuple(saved["ids"]),
        text=saved["text"],
        logprobs=None if logprobs is None else tuple(logprobs),
        truncated=saved["truncated"],
        finished=saved["finished"],
    )


def transcript_to_plain(transcript: Transcript) -> Plain:
    """The transcript of an unfinished sample."""
    return {
        "turns": [response_to_plain(turn) for turn in transcript.turns],
        "results": {turn: result_to_plain(result) for turn, result in transcript.results.items()},
    }


def transcript_from_plain(saved: Mapping[str, Any]) -> Transcript:
    """Inverse of `transcript_to_plain`."""
    return Transcript(
        tuple(response_from_plain(turn) for turn in saved["turns"]),
        {int(turn): result_from_plain(result) for turn, result in saved["results"].items()},
    )


def result_to_plain(result: Result) -> Plain:
    """One judgement or fault."""
    outcome = result.outcome
    if isinstance(outcome, Judgement):
        fields = {"judgement": _lists(asdict(outcome))}
    else:
        fields = {
            "fault": {
                "reason": outcome.reason,
                "message": outcome.message,
                "code": outcome.code,
                "metadata": dict(outcome.metadata),
            }
        }
    return {
        "id": result.id,
        "queue_s": result.queue_s,
        "execution_s": result.execution_s,
        "from_cache": result.from_cache,
        **fields,
    }


def result_from_plain(saved: Mapping[str, Any]) -> Result:
    """Inverse of `result_to_plain`."""
    outcome: Judgement | Fault
    if "judgement" in saved:
        judgement = dict(saved["judgement"])
        judgement["components"] = tuple(Component(**part) for part in judgement["components"])
        judgement["spans"] = tuple(Span(**span) for span in judgement["spans"])
        judgement["suspicions"] = tuple(judgement["suspicions"])
        judgement["appeal"] = Appeal.from_plain(judgement.get("appeal"))
        outcome = Judgement(**judgement)
    else:
        outcome = Fault(**saved["fault"])
    return Result(saved["id"], outcome, saved["queue_s"], saved["execution_s"], saved["from_cache"])


def _turn_to_plain(turn: PolicyTurn) -> Plain:
    result = None if turn.result is None else result_to_plain(turn.result)
    return {**_lists(asdict(replace(turn, result=None))), "result": result}


def _turn_from_plain(saved: Mapping[str, Any]) -> PolicyTurn:
    result = saved["result"]
    return PolicyTurn(**{**saved, "result": None if result is None else result_from_plain(result)})


def _lists(value: Any) -> Any:
    """Tuples become lists, at every depth."""
    if isinstance(value, dict):
        return {key: _lists(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(part) for part in value]
    return value
