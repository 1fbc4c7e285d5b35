"""The verifiers of a server: one dictionary for ours, one entry-point group for third parties'.

A third party declares `[project.entry-points."assay.verifiers"]` with lines `any-name =
"module:verifier"`, the verifier being a decorated function, or a class, which is called without
arguments. One that cannot be loaded is logged and left out, so that it harms nobody else; one that
takes a name or a task that is already taken is an error, because routing would be a matter of
chance.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

from assay.kit.hints import did_you_mean
from assay.reward_server.absent import hint
from assay.reward_server.domain import Lookup, Unjudgeable, Verifier
from assay.reward_server.files import FileVerifier
from assay.reward_server.functions import FunctionVerifier
from assay.reward_server.profiles import Profile, load_profiles
from assay.reward_server.profiles.appeals import PROCESS_KEY
from assay.reward_server.verifiers.exact import exact
from assay.reward_server.verifiers.form.length import length
from assay.reward_server.verifiers.form.repetition import repetition
from assay.reward_server.verifiers.form.steps import reasoning_steps
from assay.reward_server.verifiers.form.structure import well_formed
from assay.reward_server.verifiers.math import MathVerifier
from assay.reward_server.verifiers.self_verify import SelfVerifyVerifier
from assay.reward_server.verifiers.text.bleu import bleu
from assay.reward_server.verifiers.text.choice import choice
from assay.reward_server.verifiers.text.chrf import chrf
from assay.reward_server.verifiers.text.error_rate import error_rate
from assay.reward_server.verifiers.text.json_schema import json_schema
from assay.reward_server.verifiers.text.match import match
from assay.reward_server.verifiers.text.ndcg import ndcg
from assay.reward_server.verifiers.text.pairwise import pairwise_accuracy
from assay.reward_server.verifiers.text.preference import preference
from assay.reward_server.verifiers.text.regex import regex
from assay.reward_server.verifiers.text.rouge import rouge
from assay.reward_server.verifiers.text.set_f1 import set_f1
from assay.reward_server.verifiers.text.similarity import similarity
from assay.reward_server.verifiers.text.token_f1 import token_f1
from assay.reward_server.verifiers.tool_call import tool_call

ENTRY_POINT_GROUP = "assay.verifiers"

FAMILIES: dict[str, tuple[Verifier, ...]] = {
    "mathematics": (MathVerifier(),),
    "text": (
        exact,
        bleu,
        choice,
        chrf,
        error_rate,
        json_schema,
        match,
        ndcg,
        pairwise_accuracy,
        preference,
        regex,
        rouge,
        set_f1,
        similarity,
        token_f1,
    ),
    "form": (well_formed, length, reasoning_steps, repetition, tool_call),
}
"""Our own verifiers, by family; the server makes those that ask another service."""

COMPOSITES: tuple[Callable[[Lookup], Verifier], ...] = (SelfVerifyVerifier,)
"""Our own verifiers that ask others of the same server."""

_log = logging.getLogger(__name__)


class RegistryError(Exception):
    """Two verifiers claim the same name or the same task."""


class Registry:
    """The verifiers and profiles of one server, by name and by task.

    Attributes:
        ours: names of our own verifiers, whose failed self-test stops the server.
        appeal_key: by which its profiles draw items for appeals.
    """

    def __init__(self, verifiers: Iterable[Verifier], ours: Iterable[str] | None = None) -> None:
        """Registers verifiers.

        Args:
            verifiers: verifiers and profiles.
            ours: names of our own among them; by default those of `FAMILIES`.

        Raises:
            RegistryError: a name or a task is claimed twice.
        """
        self._by_name: dict[str, Verifier] = {}
        self._by_task: dict[str, Verifier] = {}
        self.appeal_key = PROCESS_KEY
        if ours is None:
            ours = [verifier.spec.name for family in FAMILIES.values() for verifier in family]
        self.ours = frozenset(ours)
        for verifier in verifiers:
            self.add(verifier)

    def add(self, verifier: Verifier, *, ours: bool = False) -> None:
        """Registers one more; `ours` says that it is one of our own.

        Raises:
            RegistryError: its name or one of its tasks is taken.
        """
        spec = verifier.spec
        if spec.name in self._by_name:
            raise RegistryError(
                f"two verifiers are named {spec.name!r}: uninstall one (known: {self._known()})"
            )
        for task in spec.tasks:
            if task in self._by_task:
                other = self._by_task[task].spec.name
                raise RegistryError(
                    f"{other!r} and {spec.name!r} both serve the task {task!r}: uninstall one"
                )
        self._by_name[spec.name] = verifier
        self._by_task.update(dict.fromkeys(spec.tasks, verifier))
        if ours:
            self.ours |= {spec.name}

    def take_profiles(self, profiles: Iterable[Profile]) -> None:
        """Serves these profiles in place of those before, all at once.

        Raises:
            RegistryError: a name or a task is taken; nothing has changed.
        """
        others = [one for one in self._by_name.values() if not isinstance(one, Profile)]
        fresh = Registry([*others, *profiles], self.ours)
        self._by_name, self._by_task = fresh._by_name, fresh._by_task

    def __iter__(self) -> Iterator[Verifier]:
        """The verifiers and profiles, sorted by name."""
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def verifier(self, name: str) -> Verifier | None:
        """The verifier of this name that is not a profile; None for none."""
        found = self._by_name.get(name)
        return None if isinstance(found, Profile) else found

    def get(self, name: str) -> Verifier | None:
        """The verifier or profile of this name; None for none."""
        return self._by_name.get(name)

    def resolve(self, name: str, task: str) -> Verifier:
        """The verifier that an item asks for: by name, else by task.

        Raises:
            Unjudgeable: UNKNOWN_VERIFIER or UNKNOWN_TASK, listing what is known.
        """
        if name:
            if name not in self._by_name:
                near = self._near(name, self._by_name, self._by_task, "task")
                raise Unjudgeable(
                    "UNKNOWN_VERIFIER",
                    f"no verifier is named {name[:80]!r}{near}; known: {self._known()}{hint(name)}",
                )
            return self._by_name[name]
        if task not in self._by_task:
            tasks = ", ".join(sorted(self._by_task)) or "none"
            what = (
                f"no verifier serves the task {task[:80]!r}"
                if task
                else "neither verifier nor task"
            )
            near = self._near(task, self._by_task, self._by_name, "verifier")
            raise Unjudgeable(
                "UNKNOWN_TASK",
                f"{what}{near}; known tasks: {tasks}; name one or a verifier{hint(task)}",
            )
        return self._by_task[task]

    def _near(self, word: str, known: Iterable[str], others: Container[str], kind: str) -> str:
        """The likely meaning of an unknown name: one of the other kind, or one spelt nearly so."""
        if word in others:
            return f"; there is a {kind} of that name"
        return did_you_mean(word, known)

    def _known(self) -> str:
        return ", ".join(sorted(self._by_name)) or "none"


def load_registry(
    remote: Iterable[Verifier] = (),
    profiles: Iterable[Path] | None = None,
    files: Iterable[FileVerifier] = (),
    appeal_key: bytes = PROCESS_KEY,
) -> Registry:
    """Our verifiers and those of installed third parties; for a server, profiles too.

    Args:
        remote: verifiers that the server made, because they need its settings.
        profiles: files of profiles besides the shipped ones; None for no profiles at all.
        files: verifiers of the operator's files.
        appeal_key: by which items are drawn for appeals.

    Raises:
        RegistryError: a name or a task is claimed twice.
        ConfigError: a file of profiles is wrong.
    """
    ours = [*(verifier for family in FAMILIES.values() for verifier in family), *remote]
    names = [verifier.spec.name for verifier in ours]
    registry = Registry([*ours, *plug_ins()], ours=names)
    registry.appeal_key = appeal_key
    for compose in COMPOSITES:
        registry.add(compose(registry.verifier), ours=True)
    for one in files:
        if registry.get(one.spec.name) is not None:
            raise RegistryError(
                f"--verifier {one.source}: the name {one.spec.name!r} is taken; choose another: "
                f"NAME={one.source}"
            )
        registry.add(one)
    if profiles is not None:
        known = [verifier.spec.name for verifier in registry]
        for profile in load_profiles(list(profiles), registry.verifier, known, appeal_key):
            registry.add(profile)
    return registry


def plug_ins() -> Iterator[Verifier]:
    """The verifiers of installed third parties that can be loaded."""
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.value):
        try:
            loaded = entry.load()
            verifier: Verifier = loaded if isinstance(loaded, FunctionVerifier) else loaded()
            verifier.spec.name  # noqa: B018 - a plug-in without a readable spec is as bad as one that does not import
        except Exception:  # noqa: BLE001 - the isolation border: a plug-in harms nobody else
            _log.exception(
                "verifier plug-in %s (%s) is left out: it cannot be loaded", entry.name, entry.value
            )
            continue
        yield verifier
