"""Steps of recorded episodes, as a critic of actions learns them. Pure.

A step's reward is its turn's own; the last step of a policy's agent has the episode's as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.environments.formats import Format
from assay.environments.record import EpisodeRecord, read
from assay.environments.registry import environment_of
from assay.environments.tools import tools_of
from assay.kit.errors import ConfigError
from assay.kit.runs.rollouts import TRAIN, is_rollouts, read_rollouts
from assay.trainer.recipes.pivots.trajectories import told


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """A turn of an episode that ended with a judgement.

    Attributes:
        episode: names it.
        messages: all before the turn, roles and texts.
        action: what the policy wrote.
        reward: of the step.
        following: the place of the agent's next step in the list; None behind the last.
        truncated: the action was cut.
    """

    episode: str
    messages: tuple[tuple[str, str], ...]
    action: str
    reward: float
    following: int | None
    truncated: bool


def steps_in(
    path: Path, style: Format, *, note: Callable[[str], None] = lambda _text: None
) -> list[LoggedStep]:
    """The steps of a run's training episodes, in order.

    An episode without a judgement is left out whole: a fault is no reward of 0. So is one in which
    agents earn their own, whose rewards this does not tell apart.

    Args:
        path: a run, or its folder of rollouts.
        style: how calls and results stand in messages.
        note: gets a sentence for what is left out.

    Raises:
        ConfigError: it is no run, or it has no such episode.
    """
    if not is_rollouts(path):
        raise ConfigError(f"{path} is no run with rollouts; name a run's folder")
    found: list[LoggedStep] = []
    unjudged = several = 0
    for row in read_rollouts(path, phase=TRAIN, note=note):
        if not row.get("episode"):
            continue
        episode = read(row["episode"])
        judgement = episode.outcome.result.judgement if episode.outcome else None
        if judgement is None:
            unjudged += 1
        elif episode.outcome is not None and episode.outcome.rewards:
            several += 1
        else:
            name = f"{row['step']}-{row['draw']}-{row['sample']}"
            found += _steps(episode, name, style, judgement.reward, len(found))
    if unjudged or several:
        note(
            f"{path}: left out {unjudged} episodes without a judgement and {several} whose agents "
            "earn their own rewards"
        )
    if not found:
        raise ConfigError(
            f"{path} holds no episode that was judged; a run of episodes records them"
        )
    return found


def _steps(
    episode: EpisodeRecord, name: str, style: Format, reward: float, first: int
) -> Iterator[LoggedStep]:
    specs = tools_of(environment_of(episode.environment))
    whole = list(told(episode, style, specs))
    last = {step.before.agent: number for number, (step, _, _) in enumerate(whole)}
    for number, (step, messages, _) in enumerate(whole):
        agent = step.before.agent
        ends = last[agent] == number
        later = (n for n in range(number + 1, len(whole)) if whole[n][0].before.agent == agent)
        own = (step.reward or 0.0) + (reward if ends else 0.0)
        following = None if ends else first + next(later)
        yield LoggedStep(name, messages, step.turn.text, own, following, step.turn.truncated)
