"""What a worker of the reward server does: judges one item at a time, or looks at a parcel of them.

Loaded by the fork server, which prepares the verifiers once for all workers.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from assay.kit.pool.frames import FrameError
from assay.reward_server import border
from assay.reward_server.domain import VERIFIER_FAILED, CompositeVerifier, Fault, Outcome, Verifier
from assay.reward_server.files import FileError, FileSource, FileVerifier, load
from assay.reward_server.registry import Registry, load_registry
from assay.reward_server.workers import wire

_log = logging.getLogger(__name__)


class Judging:
    """Judges items.

    Args:
        registry: the verifiers, prepared but for the lazy ones.
        prepared: names of the lazy verifiers that are loaded already.
        broken: what is wrong with verifiers of files that cannot be loaded here, by name.
    """

    def __init__(
        self,
        registry: Registry,
        prepared: Collection[str],
        broken: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._registry = registry
        self._broken = broken
        self._loaded = set(prepared)

    def take(self, body: bytes) -> Callable[[], bytes]:
        """Reads a job, and loads a lazy verifier's library before its first item's time runs."""
        if body.startswith(wire.PARCEL):
            names, items = wire.read_parcel(body)
            found = [self._registry.verifier(name) for name in names]
            for one in found:
                if one is not None:
                    self._load(one)
            return partial(self._look, found, items)
        job: dict[str, Any] = json.loads(body)
        verifier = self._registry.verifier(job["verifier"])
        if verifier is None:
            text = f"the workers could not load the verifier {job['verifier']!r}"
            if job["verifier"] in self._broken:
                text = f"{text}: {self._broken[job['verifier']]}"
            return partial(_pack, Fault(VERIFIER_FAILED, text))
        self._load(verifier)
        return partial(self._judge, verifier, job["item"])

    def _load(self, verifier: Verifier) -> None:
        name = verifier.spec.name
        if not verifier.spec.lazy or name in self._loaded:
            return
        self._loaded.add(name)
        try:
            verifier.prepare()
        except Exception:  # noqa: BLE001 - the isolation border: its items will be faults
            _log.exception("verifier %s cannot be prepared", name)

    @staticmethod
    def _judge(verifier: Verifier, item: dict[str, Any]) -> bytes:
        return _pack(border.judge(verifier, wire.read_item(item, verifier.spec)))

    @staticmethod
    def _look(
        verifiers: Sequence[Verifier | None], items: Sequence[tuple[int, dict[str, Any]]]
    ) -> bytes:
        """Does the quick work on each item: all of it inline verifiers', a glance for others."""
        looks: list[tuple[dict[str, Any] | None, float]] = []
        for place, body in items:
            verifier, outcome = verifiers[place], None
            began_s = time.perf_counter()
            if verifier is not None:
                quick = border.judge if verifier.spec.isolation == "inline" else border.glance
                outcome = quick(verifier, wire.read_item(body, verifier.spec))
            told = None if outcome is None else _body(outcome)
            looks.append((told, time.perf_counter() - began_s))
        return wire.pack({"looks": looks}, wire.MAX_DONE_BYTES)


def prepare(settings: str) -> Judging:
    """Loads what the verifiers that run in workers need.

    Args:
        settings: JSON; `preload` has the names of lazy verifiers that are loaded all the same,
            "all" for all of them, and `files` the sources of verifiers in files.
    """
    told = json.loads(settings)
    files: list[FileVerifier] = []
    broken: dict[str, str] = {}
    for body in told["files"]:
        source = FileSource.from_json(body)
        try:
            files.append(load(source))
        except FileError as error:
            broken[source.name] = border.one_line(str(error))
            _log.error("verifier %s (%s) cannot be loaded: %s", source.name, source, error)
    registry = load_registry(files=files)
    return Judging(registry, _prepared(registry, told["preload"]), broken)


def _prepared(registry: Registry, preload: Sequence[str]) -> set[str]:
    prepared: set[str] = set()
    for verifier in registry:
        if isinstance(verifier, CompositeVerifier):
            continue
        spec = verifier.spec
        wanted = not spec.lazy or spec.name in preload or "all" in preload
        if spec.isolation != "process" or not wanted:
            continue
        try:
            verifier.prepare()
        except Exception:  # noqa: BLE001 - the isolation border
            # It will fail its self-test and be reported unhealthy;
            # the others go on.
            _log.exception("verifier %s cannot be prepared", spec.name)
        else:
            prepared.add(spec.name)
    return prepared


def _pack(outcome: Outcome) -> bytes:
    try:
        return wire.pack(_body(outcome), wire.MAX_DONE_BYTES)
    except (FrameError, TypeError, ValueError):
        return wire.pack(wire.outcome_to_json(_UNSENDABLE), wire.MAX_DONE_BYTES)


def _body(outcome: Outcome) -> dict[str, Any]:
    try:
        return wire.outcome_to_json(outcome)
    except (TypeError, ValueError, AttributeError):
        return wire.outcome_to_json(_UNSENDABLE)


_UNSENDABLE = Fault(VERIFIER_FAILED, "the verifier's judgement cannot be sent")
