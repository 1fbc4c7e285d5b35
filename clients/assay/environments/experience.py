"""Experience without weights: notes that a policy reads, written from its episodes' rewards.

Training-Free GRPO (arXiv 2510.08191): of a group whose rewards differ, a model reads transcripts
and edits the notes. What a policy writes is read by the model that keeps them: look at them.
Prompts, limits and edits are in our words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.environments.episode import Episode
from assay.environments.types import EpisodeOutcome
from assay.kit.errors import ConfigError

Write = Callable[[Sequence[Mapping[str, str]]], Awaitable[str]]
"""Writes a text to chat messages: `UserEndpoint.write`, or a function of yours."""
MOST_NOTES = 48
MOST_NOTE_CHARS = 400
_TRANSCRIPT_CHARS = 6_000
_HEAD = "Notes from earlier tasks of this kind; use those that fit:"
_ASK = (
    "You keep the notes of somebody who solves tasks of one kind. You read several attempts at one "
    "task with the reward of each. Say to yourself what the better attempts did that the others "
    "did not, in a way that helps with other tasks too: no answer, no name of this task. Then "
    "change the notes. Write one JSON list of edits and nothing behind it, for example\n"
    '[{{"add": "Check the year."}}, {{"change": "n2", "to": "Look twice."}}, {{"remove": "n1"}}]\n'
    "or [] for none. At most {notes} notes of at most {chars} characters.\n\nThe notes now:\n{now}"
)


class NoEdits(Exception):
    """What the model wrote is no list of edits; the notes stay as they are."""


@dataclass(frozen=True, slots=True)
class JudgedAttempt:
    """One sample of a group: what was written and read, and what it earned."""

    transcript: str
    reward: float


@dataclass(frozen=True, slots=True)
class ExperienceNotes:
    """Notes by id, of one version.

    Attributes:
        version: how many times they changed.
        notes: by id, "n1", "n2", ...; an id is never used again.
        last: the number of the latest id.
        history: the notes of each version before, the oldest first.
    """

    version: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)
    last: int = 0
    history: tuple[Mapping[str, str], ...] = ()

    @property
    def prompt(self) -> str:
        """What stands before a task; empty without notes."""
        if not self.notes:
            return ""
        return "\n".join([_HEAD, *(f"- {text}" for text in self.notes.values())])

    def edited(self, edits: Sequence[Mapping[str, Any]]) -> ExperienceNotes:
        """The next version; this one where nothing changes.

        Raises:
            NoEdits: an edit is none, or names no note; none of them is made.
        """
        notes, last = dict(self.notes), self.last
        for edit in edits:
            if not isinstance(edit, Mapping):
                raise NoEdits(f"{str(edit)[:80]!r} is no edit")
            keys = set(edit)
            if keys == {"add"}:
                last += 1
                notes[f"n{last}"] = _note(edit["add"])
            elif keys == {"change", "to"} and edit["change"] in notes:
                notes[edit["change"]] = _note(edit["to"])
            elif keys == {"remove"} and edit["remove"] in notes:
                del notes[edit["remove"]]
            else:
                raise NoEdits(f"{str(dict(edit))[:80]} is no edit of these notes")
        if len(notes) > MOST_NOTES:
            raise NoEdits(f"there would be {len(notes)} notes; {MOST_NOTES} is the most")
        if notes == self.notes:
            return self
        return ExperienceNotes(self.version + 1, notes, last, (*self.history, self.notes))

    def save(self, path: str | Path) -> None:
        """Writes the file whole, in the place of the one before."""
        where = Path(path)
        beside = where.with_name(f"{where.name}.{os.getpid()}.new")
        facts = {
            "version": self.version,
            "notes": dict(self.notes),
            "last": self.last,
            "history": [dict(one) for one in self.history],
        }
        beside.write_text(json.dumps(facts, ensure_ascii=False, indent=1), encoding="utf-8")
        beside.replace(where)

    @classmethod
    def load(cls, path: str | Path) -> ExperienceNotes:
        """Reads a file; none there is no notes yet.

        Raises:
            ConfigError: it is something else.
        """
        where = Path(path)
        try:
            facts = json.loads(where.read_text(encoding="utf-8"))
            found = cls(
                int(facts["version"]),
                {str(name): _note(text) for name, text in facts["notes"].items()},
                int(facts["last"]),
                tuple(dict(one) for one in facts["history"]),
            )
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, NoEdits) as error:
            raise ConfigError(f"{where} holds no notes: {type(error).__name__}: {error}") from error
        return found


def notes_of(path: str) -> str:
    """The prompt of a file of notes, read again whenever it changed; empty for no path.

    Raises:
        ConfigError: it is no file of notes.
    """
    if not path:
        return ""
    try:
        facts = Path(path).stat()
    except OSError:
        return ""
    return _prompt(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=16)
def _prompt(path: str, changed_ns: int, size: int) -> str:
    del changed_ns, size
    return ExperienceNotes.load(path).prompt


def attempt_of(episode: Episode, outcome: EpisodeOutcome) -> JudgedAttempt | None:
    """An episode for its group; None where it does not train."""
    if not outcome.trains or outcome.result.reward is None:
        return None
    parts = []
    for step in episode.steps:
        parts += [f"{one.role}: {one.content}" for one in step.before.messages]
        parts.append(f"{step.turn.agent}: {step.turn.text}")
    return JudgedAttempt("\n\n".join(parts), outcome.result.reward)


async def learn(
    library: ExperienceNotes, groups: Sequence[Sequence[JudgedAttempt]], write: Write
) -> ExperienceNotes:
    """The notes after some groups, one after the other.

    A group whose answer is no list of edits is asked once more, and then leaves the notes alone.
    What `write` raises is raised; nothing is saved here.
    """
    for group in groups:
        if len({one.reward for one in group}) < 2:
            continue
        messages = _messages(library, group)
        for _ in range(2):
            wrote = await write(messages)
            try:
                library = library.edited(_edits(wrote))
                break
            except NoEdits as trouble:
                again = f"That is no list of edits: {trouble}. Write the JSON list alone."
                messages = [
                    *messages,
                    {"role": "assistant", "content": wrote},
                    {"role": "user", "content": again},
                ]
    return library


def _messages(library: ExperienceNotes, group: Sequence[JudgedAttempt]) -> list[dict[str, str]]:
    now = "\n".join(f"{name}: {text}" for name, text in library.notes.items()) or "(none)"
    task = _ASK.format(notes=MOST_NOTES, chars=MOST_NOTE_CHARS, now=now)
    best_first = sorted(group, key=lambda one: -one.reward)
    attempts = [
        f"Attempt {number}, reward {one.reward:g}:\n{_cut(one.transcript)}"
        for number, one in enumerate(best_first, start=1)
    ]
    return [
        {"role": "system", "content": task},
        {"role": "user", "content": "\n\n=====\n\n".join(attempts)},
    ]


def _cut(text: str) -> str:
    half = _TRANSCRIPT_CHARS // 2
    return text if len(text) <= _TRANSCRIPT_CHARS else f"{text[:half]}\n[...]\n{text[-half:]}"


def _edits(text: str) -> list[Any]:
    start, end = text.find("["), text.rfind("]")
    try:
        found = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        raise NoEdits("no JSON list was found") from None
    if not isinstance(found, list):
        raise NoEdits("it is no list")
    return found


def _note(text: object) -> str:
    plain = " ".join(text.split()) if isinstance(text, str) else ""
    if not 0 < len(plain) <= MOST_NOTE_CHARS:
        raise NoEdits(f"a note has 1 to {MOST_NOTE_CHARS} characters")
    return plain
