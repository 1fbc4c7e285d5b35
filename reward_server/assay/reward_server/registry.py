"""Which verifiers there are: one dictionary for ours, one entry-point group for those of others.

A third party declares `[project.entry-points."assay.verifiers"]` with lines `any-name =
"module:VerifierClass"`. The class is called without arguments. One that cannot be loaded is logged
and left out, so that it harms nobody else; one that takes a name or a task that is already taken is
an error, because routing would be a matter of chance.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import entry_points

from assay.reward_server.domain import Unjudgeable, Verifier
from assay.reward_server.verifiers.exact import ExactVerifier
from assay.reward_server.verifiers.mathematics import MathVerifier

ENTRY_POINT_GROUP = "assay.verifiers"

BUILT_IN: dict[str, Callable[[], Verifier]] = {
    "exact": ExactVerifier,
    "math": MathVerifier,
}
CODE = "code"
OURS = frozenset((*BUILT_IN, CODE))
"""Names of our own verifiers; `code` is made by the server, which knows where the sandbox is."""

_HINTS = {CODE: "start the reward server with --sandbox-target to serve it"}

_log = logging.getLogger(__name__)


class RegistryError(Exception):
    """Two verifiers claim the same name or the same task."""


class Registry:
    """The verifiers of one server, by name and by task."""

    def __init__(self, verifiers: Iterable[Verifier]) -> None:
        """Registers verifiers.

        Raises:
            RegistryError: a name or a task is claimed twice.
        """
        self._by_name: dict[str, Verifier] = {}
        self._by_task: dict[str, Verifier] = {}
        for verifier in verifiers:
            self._add(verifier)

    def _add(self, verifier: Verifier) -> None:
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

    def __iter__(self) -> Iterator[Verifier]:
        """The verifiers, sorted by name."""
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def get(self, name: str) -> Verifier | None:
        """The verifier of this name, if there is one."""
        return self._by_name.get(name)

    def resolve(self, name: str, task: str) -> Verifier:
        """The verifier that an item asks for: by name, else by task.

        Raises:
            Unjudgeable: UNKNOWN_VERIFIER or UNKNOWN_TASK, listing what is known.
        """
        if name:
            if name not in self._by_name:
                raise Unjudgeable(
                    "UNKNOWN_VERIFIER",
                    f"no verifier is named {name[:80]!r}; known: {self._known()}{_hint(name)}",
                )
            return self._by_name[name]
        if task not in self._by_task:
            tasks = ", ".join(sorted(self._by_task)) or "none"
            what = (
                f"no verifier serves the task {task[:80]!r}"
                if task
                else "neither verifier nor task"
            )
            raise Unjudgeable(
                "UNKNOWN_TASK",
                f"{what}; known tasks: {tasks}; name one or a verifier{_hint(task)}",
            )
        return self._by_task[task]

    def _known(self) -> str:
        return ", ".join(sorted(self._by_name)) or "none"


def _hint(name: str) -> str:
    return f"; {_HINTS[name]}" if name in _HINTS else ""


def load_registry(remote: Iterable[Verifier] = ()) -> Registry:
    """Our verifiers and those of installed third parties.

    Args:
        remote: verifiers that the server made, because they need its settings.

    Raises:
        RegistryError: a name or a task is claimed twice.
    """
    verifiers = [*(make() for make in BUILT_IN.values()), *remote]
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.value):
        try:
            verifier: Verifier = point.load()()
            verifier.spec.name  # noqa: B018 - a plug-in without a readable spec is as bad as one that does not import
        except Exception:  # noqa: BLE001 - the isolation border: a plug-in harms nobody else
            _log.exception(
                "verifier plug-in %s (%s) is left out: it cannot be loaded", point.name, point.value
            )
            continue
        verifiers.append(verifier)
    return Registry(verifiers)
