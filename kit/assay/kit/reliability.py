"""How often a verifier is wrong, as files of measured rates hold it. Pure.

One JSON object: `{"format": 1, "measured": [{"verifier", "domain", "verifier_version",
"data_digest", "truth", "false_positive", "false_negative"}]}`, each rate null or
`{"value", "low", "high", "confidence", "responses"}`. The names are those of reward.proto.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.labels import is_name
from assay.kit.runs.stats import clopper_pearson

FORMAT = 1
CONFIDENCE = 0.95
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RATES = ("false_positive", "false_negative")
_TEXTS = ("verifier", "domain", "verifier_version", "data_digest", "truth")


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """A share of responses, 0 to 1, with its interval; reward.proto has the fields."""

    value: float
    low: float
    high: float
    confidence: float
    responses: int

    def __str__(self) -> str:
        ends = f"{100 * self.low:.2g} to {100 * self.high:.2g}"
        return f"{100 * self.value:.2g} % ({ends}; {self.responses:,} responses)"


@dataclass(frozen=True, slots=True)
class Reliability:
    """How often a verifier was found wrong on one kind of items; None: not measured.

    reward.proto has the fields.
    """

    domain: str
    false_positive: ErrorRate | None
    false_negative: ErrorRate | None
    verifier_version: str
    data_digest: str
    truth: str

    def told(self, version: str) -> str:
        """Both rates in a line; `version` is the verifier's now."""
        rates = ((self.false_positive, "wrong accepted"), (self.false_negative, "right rejected"))
        said = [f"{words} {rate}" for rate, words in rates if rate is not None]
        other = "" if self.verifier_version == version else f"; version {self.verifier_version}"
        return f"{', '.join(said) or 'not measured'}; truth: {self.truth}{other}"


def error_rate(errors: int, responses: int) -> ErrorRate | None:
    """The share of errors with Clopper and Pearson's interval; None of no responses."""
    if not responses:
        return None
    low, high = clopper_pearson(errors, responses, CONFIDENCE)
    return ErrorRate(errors / responses, low, high, CONFIDENCE, responses)


def reliability_text(measured: Iterable[tuple[str, Reliability]]) -> str:
    """A file's text, of verifiers and what was measured of each."""
    listed = [{"verifier": name, **asdict(one)} for name, one in measured]
    return json.dumps({"format": FORMAT, "measured": listed}, indent=1) + "\n"


def read_reliability(text: str, source: str) -> list[tuple[str, Reliability]]:
    """The verifiers of a file, and what was measured of each.

    Raises:
        ConfigError: it has another form; the message says where.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ConfigError(f"{source}: no file of measured rates in format {FORMAT}")
    measured = content.get("measured")
    if not isinstance(measured, list):
        raise ConfigError(f"{source}: 'measured' must be a list")
    return [_read(one, f"{source}, entry {place}") for place, one in enumerate(measured, start=1)]


def _read(entry: object, where: str) -> tuple[str, Reliability]:
    if not isinstance(entry, dict) or set(entry) != {*_TEXTS, *_RATES}:
        raise ConfigError(f"{where}: needs the keys {', '.join((*_TEXTS, *_RATES))}, and no other")
    for key in _TEXTS:
        if not isinstance(entry[key], str) or not entry[key].strip():
            raise ConfigError(f"{where}: {key!r} must be a text that is not blank")
    if not is_name(entry["domain"]):
        raise ConfigError(f"{where}: 'domain' is {entry['domain'][:80]!r}; give a name like gsm8k")
    if not _DIGEST.fullmatch(entry["data_digest"]):
        raise ConfigError(f"{where}: 'data_digest' must be a SHA-256: 64 hexadecimal digits")
    positive, negative = (_rate(entry[key], f"{where}, {key!r}") for key in _RATES)
    domain, version, digest, truth = (str(entry[key]) for key in _TEXTS[1:])
    return entry["verifier"], Reliability(domain, positive, negative, version, digest, truth)


def _rate(entry: object, where: str) -> ErrorRate | None:
    if entry is None:
        return None
    names = ("value", "low", "high", "confidence", "responses")
    if not isinstance(entry, Mapping) or set(entry) != set(names):
        raise ConfigError(f"{where}: must be null or have the keys {', '.join(names)}")
    numbers: list[Any] = [entry[name] for name in names]
    fits = all(type(number) in (int, float) and number >= 0 for number in numbers)
    if fits:
        share, low, high, confidence, responses = numbers
        fits = low <= share <= high <= 1 and 0 < confidence < 1 and type(responses) is int
    if not fits:
        raise ConfigError(
            f"{where}: needs 0 <= low <= value <= high <= 1, a confidence between 0 and 1, and a "
            "whole number of responses"
        )
    value, low, high, confidence = map(float, numbers[:4])
    return ErrorRate(value, low, high, confidence, numbers[4])
