"""Numbers of episodes: of one for every process, and of a step. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from assay.environments.endings import Ending
from assay.trainer.rollouts.types import Known, Remote, Rollout

ENDINGS = tuple(Ending)


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """Numbers of one episode; all are floats, for they travel in a row.

    Attributes:
        ending: its place in `ENDINGS`.
        earned: sum of the turns' own rewards.
        seconds: of tools and of the environment.
    """

    turns: float = 0.0
    calls: float = 0.0
    refused: float = 0.0
    cached: float = 0.0
    void: float = 0.0
    contexts: float = 0.0
    earned: float = 0.0
    seconds: float = 0.0
    ending: float = 0.0


def facts_of(rollout: Rollout) -> tuple[float, ...]:
    """See Talk.facts."""
    acted = rollout.acted
    if acted is None:
        return astuple(EpisodeFacts())
    turns = acted.turns
    facts = EpisodeFacts(
        turns=len(turns),
        calls=sum(turn.calls for turn in turns),
        refused=sum(turn.refused for turn in turns),
        cached=sum(turn.cached for turn in turns),
        void=sum(turn.void for turn in turns),
        contexts=len(acted.contexts),
        earned=sum(turn.reward or 0.0 for turn in turns),
        seconds=sum(turn.seconds for turn in turns),
        ending=ENDINGS.index(Ending(acted.ending)),
    )
    return tuple(map(float, astuple(facts)))


def episode_metrics(known: Iterable[Known]) -> dict[str, float]:
    """Metrics of a step's episodes on all processes; of faulted ones only how they ended."""
    rows = [(one, _facts(one)) for one in known]
    if not rows:
        return {}
    ended = [ENDINGS[int(facts.ending)] for _, facts in rows]
    metrics = {
        f"episodes_{ending.replace('-', '_')}": ended.count(ending) / len(rows)
        for ending in ENDINGS
    }
    whole = [(one, facts) for one, facts in rows if one.result.fault is None]
    if not whole:
        return metrics
    turns = sum(facts.turns for _, facts in whole)
    calls = sum(facts.calls for _, facts in whole)
    metrics |= {
        "episodes_turns": turns / len(whole),
        "episodes_calls": calls / len(whole),
        "episodes_tokens": sum(one.length for one, _ in whole) / len(whole),
        "episodes_tool_s": sum(facts.seconds for _, facts in whole) / len(whole),
        "episodes_contexts": sum(facts.contexts for _, facts in whole) / len(whole),
        "episodes_turn_reward": sum(facts.earned for _, facts in whole) / len(whole),
        "episodes_with_void": sum(facts.void > 0 for _, facts in whole) / len(whole),
    }
    if turns:
        metrics["episodes_void"] = sum(facts.void for _, facts in whole) / turns
    if calls:
        metrics["episodes_refused"] = sum(facts.refused for _, facts in whole) / calls
        metrics["episodes_cached"] = sum(facts.cached for _, facts in whole) / calls
    return metrics


def _facts(one: Known) -> EpisodeFacts:
    row: Sequence[float] = one.facts if isinstance(one, Remote) else facts_of(one)
    return EpisodeFacts(*row)
