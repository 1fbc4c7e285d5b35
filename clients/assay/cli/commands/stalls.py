"""Finds what stalls a service, from two readings of its metrics, some seconds apart.

It reads the metrics of docs/operate/observability.md by their names. All but `scrape` is pure.
"""

from __future__ import annotations

import http.client
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from assay.kit.errors import ConfigError

_TIMEOUT_S = 5.0
_MAX_BYTES = 16 * 2**20
_MAX_FAULTS = 0.05
_MAX_FDS = 0.8
_SERVICES = {"reward": "reward_server", "sandbox": "sandbox", "genrm": "genrm"}
_ANSWERED = {
    "reward": ("judgements", "faults"),
    "sandbox": ("runs", "suites", "faults"),
    "genrm": ("judgements", "faults"),
}
Line = tuple[str, str, bool | None]
"""Subject, finding, and whether it is fine (None: a mere fact)."""


@dataclass(frozen=True, slots=True)
class Look:
    """A service's metrics at one moment: name and labels to value."""

    samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Look:
        """Reads the text format of Prometheus.

        Raises:
            ValueError: it has another format.
        """
        return cls(
            {
                (sample.name, frozenset(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            }
        )

    def has(self, name: str) -> bool:
        """Whether there is such a metric."""
        return any(known == name for known, _ in self.samples)

    def total(self, name: str) -> float:
        """The sum over all labels; 0 where there is none."""
        return sum(value for (known, _), value in self.samples.items() if known == name)

    def by(self, name: str, label: str) -> Counter[str]:
        """The sums by one label."""
        found: Counter[str] = Counter()
        for (known, labels), value in self.samples.items():
            if known == name:
                found[dict(labels).get(label, "")] += round(value)
        return found


def scrape(address: str) -> Look:
    """Reads the metrics port "host:port".

    Raises:
        ConfigError: nobody answers there, or not with metrics.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"--metrics {address[:80]!r} is no HOST:PORT")
    try:
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=_TIMEOUT_S)
        connection.request("GET", "/metrics", headers={"Accept": "text/plain"})
        answer = connection.getresponse()
        body = answer.read(_MAX_BYTES)
        connection.close()
    except (OSError, http.client.HTTPException, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ConfigError(
            f"no metrics at {address} ({why}): start the service with --metrics-port"
        ) from error
    try:
        if answer.status != 200:
            raise ValueError(str(answer.status))
        look = Look.read(body.decode("utf-8"))
    except ValueError as error:
        raise ConfigError(f"{address} does not show metrics: give a --metrics-port") from error
    if not look.has("assay_rpc_serving"):
        raise ConfigError(f"{address} shows no service of Assay: give its --metrics-port")
    return look


def findings(before: Look, after: Look, seconds: float) -> list[Line]:
    """The findings from two readings of one service, `seconds` apart."""
    part = next((p for p in _SERVICES if after.has(f"assay_{p}_items_total")), "")
    name = _SERVICES.get(part, "service")
    if not part:
        return [(f"{name}", "shows no items: is it another version?", False)]
    serving = after.total("assay_rpc_serving") > 0
    state = "serves" if serving else "starts or drains: every call is refused"
    running = after.total("assay_rpc_calls_running")
    lines: list[Line] = [(f"{name}: state", f"{state}; {running:.0f} calls in progress", serving)]
    lines += _queue(part, name, before, after, seconds)
    lines += _faults(part, name, before, after)
    lines += _refused(name, before, after)
    restarts = f"assay_{part}_worker_restarts_total"
    fresh = after.total(restarts) - before.total(restarts)
    text = f"{after.total(restarts):.0f} restarts since the start"
    if fresh > 0:
        text += f", {fresh:.0f} in these {seconds:g} s: look at its log for what kills them"
    lines.append((f"{name}: workers", text, None if fresh <= 0 else False))
    return lines + _journal(name, before, after) + _process(name, after)


def _queue(part: str, name: str, before: Look, after: Look, seconds: float) -> list[Line]:
    waiting = after.total(f"assay_{part}_queue_items")
    parts = [f"assay_{part}_{kind}_total" for kind in _ANSWERED[part]]
    answered = sum(after.total(kind) - before.total(kind) for kind in parts)
    text = f"{waiting:.0f} items wait"
    if part == "reward":
        text += f", {after.total('assay_reward_workers_busy'):.0f} workers are busy"
    text += f"; {answered / seconds:.1f} items a second are answered"
    wait = f"assay_{part}_queue_wait_seconds"
    bound = _quantile(before, after, wait, 0.99)
    lines: list[Line] = []
    stalls = waiting > 0 and answered <= 0 and before.total(f"assay_{part}_queue_items") > 0
    if stalls:
        text += f": nothing came in {seconds:g} s; a backend may hang, or each item takes that long"
    lines.append((f"{name}: queue", text, not stalls))
    if bound is not None:
        lines.append((f"{name}: wait", f"99 of 100 items waited at most {bound:g} s", None))
    return lines


def _quantile(before: Look, after: Look, name: str, share: float) -> float | None:
    """The bucket of a quantile between the two readings; without data there, since the start."""
    bounds: dict[float, float] = {}
    for look, sign in ((after, 1), (before, -1)):
        for (known, labels), value in look.samples.items():
            if known == f"{name}_bucket":
                bound = float(dict(labels)["le"])
                bounds[bound] = bounds.get(bound, 0.0) + sign * value
    if not bounds or bounds[math.inf] <= 0:
        return _quantile(Look(), after, name, share) if before.samples else None
    return next(bound for bound in sorted(bounds) if bounds[bound] >= share * bounds[math.inf])


def _faults(part: str, name: str, before: Look, after: Look) -> list[Line]:
    """Faults between the two readings; without answers there, since the start."""
    faults = f"assay_{part}_faults_total"
    kinds = [f"assay_{part}_{kind}_total" for kind in _ANSWERED[part]]
    reasons = after.by(faults, "reason")
    answered = sum(after.total(kind) for kind in kinds)
    now = answered - sum(before.total(kind) for kind in kinds)
    since = "since the start"
    if now > 0:
        reasons, answered, since = reasons - before.by(faults, "reason"), now, "just now"
    if not answered:
        return [(f"{name}: faults", "nothing was answered yet", None)]
    share = reasons.total() / answered
    text = f"{share:.1%} of {answered:.0f} items {since}"
    if reasons:
        text += f": {_most(reasons)}; docs/reference/errors.md says what to do"
    return [(f"{name}: faults", text, share <= _MAX_FAULTS)]


def _refused(name: str, before: Look, after: Look) -> list[Line]:
    calls = "assay_rpc_calls_total"
    reasons = after.by(calls, "reason")
    del reasons[""]
    fresh = reasons - before.by(calls, "reason")
    if not reasons:
        return []
    text = f"{_most(reasons)} since the start"
    if fresh:
        text += f"; just now {_most(fresh)}"
    return [(f"{name}: refused calls", text, not fresh)]


def _journal(name: str, before: Look, after: Look) -> list[Line]:
    entries = "assay_reward_journal_entries_total"
    if not after.has(entries):
        return []
    fates = after.by(entries, "fate")
    waiting = after.total("assay_reward_journal_queue_items")
    size_mb = after.total("assay_reward_journal_bytes") / 2**20
    text = f"{fates['written']} written, {waiting:.0f} wait, {size_mb:.0f} MiB"
    if not after.total("assay_reward_journal_on"):
        text += "; it is off: the log says why"
        return [(f"{name}: journal", text, False)]
    lost = fates["dropped"]
    if lost:
        text += f"; {lost} dropped: they come faster than the disk takes them"
    return [(f"{name}: journal", text, lost <= before.by(entries, "fate")["dropped"])]


def _process(name: str, after: Look) -> list[Line]:
    files, most = after.total("process_open_fds"), after.total("process_max_fds")
    memory_mb = after.total("process_resident_memory_bytes") / 2**20
    text = f"{memory_mb:.0f} MiB of memory, {files:.0f} of {most:.0f} open files"
    few = bool(most) and files > _MAX_FDS * most
    if few:
        text += ": raise `ulimit -n`"
    return [(f"{name}: process", text, False if few else None)] if files else []


def _most(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason} x{count}" for reason, count in reasons.most_common(3))


def look_at(
    addresses: Sequence[str], wait: Callable[[float], object], seconds: float
) -> list[Line]:
    """Reads metrics ports ("host:port") twice; `wait` gets the seconds in between."""
    lines: list[Line] = []
    first: dict[str, Look] = {}
    for address in addresses:
        try:
            first[address] = scrape(address)
        except ConfigError as error:
            lines.append((f"metrics at {address}", str(error), False))
    if first:
        wait(seconds)
    for address, before in first.items():
        try:
            lines += findings(before, scrape(address), seconds)
        except ConfigError as error:
            lines.append((f"metrics at {address}", f"gone meanwhile: {error}", False))
    return lines
