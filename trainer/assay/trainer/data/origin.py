"""Where the problems of a run come from, for people and for run.json. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from assay.trainer.settings.words import count

_SHOWN = 100
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class DataOrigin:
    """What a run is trained on and evaluated with.

    Attributes:
        source: data.source.
        name: of the file, the task, or the data set with its subset and split.
        rows: of the training, before any are held out.
        train: problems to train on.
        eval: problems held out.
        prompt: column of the prompts; empty for none, as of references.
        reference: column of the references, or of tests.
        by_name: keys of data.columns that the settings leave to the columns' names.
        digest: "sha256:" and hexadecimal digits, or "fingerprint:" of a data set of the hub.
        example: prompt (without one, the row) and reference of the first problem, shortened.
        evaluation: name, rows and digest of the rows for the evaluation, where they are apart.
    """

    source: str
    name: str
    rows: int
    train: int
    eval: int
    prompt: str
    reference: str
    by_name: tuple[str, ...]
    digest: str
    example: Mapping[str, str]
    evaluation: Mapping[str, str | int] | None = None

    def to_json(self) -> dict[str, Any]:
        """For run.json and report.json."""
        told = asdict(self)
        return {**told, "by_name": list(self.by_name)}

    def differs_from(self, earlier: Mapping[str, Any]) -> str:
        """How the rows differ from what `to_json` gave at an earlier time; empty where they do not.

        Fingerprints are not compared: they change with the version of `datasets`.
        """
        then = earlier.get("digest", "")
        if self.digest == then or not (
            then.startswith("sha256:") and self.digest.startswith("sha")
        ):
            return ""
        return (
            f"{self.source} {self.name} has other rows than this run began with: "
            f"{_short(self.digest)} now, {_short(then)} then"
        )

    @property
    def line(self) -> str:
        """All but the example, on one line."""
        return ", ".join([f"{self.source} {self.name}", *self._facts(_short(self.digest))])

    @property
    def lines(self) -> list[str]:
        """All of it, for an explanation and a report."""
        told = [f"{self.source} {self.name}", ", ".join(self._facts("")), self.digest]
        if self.evaluation:
            told.append("evaluation: {name}, {rows:,} rows, {digest}".format(**self.evaluation))
        example = " -> ".join(filter(None, self.example.values()))
        return [*told, f"for example: {example}"]

    def _facts(self, digest: str) -> list[str]:
        prompt, reference = (
            f'{key} in "{column}"' + (" (by its name)" if key in self.by_name else "")
            if column
            else ""
            for key, column in (("prompt", self.prompt), ("reference", self.reference))
        )
        apart = f"{self.train:,} to train on, {self.eval:,} held out"
        facts = [f"{count(self.rows, 'row')} ({apart})", prompt, reference, digest]
        return [fact for fact in facts if fact]


def _short(digest: str) -> str:
    kind, _, digits = digest.partition(":")
    return f"{kind} {digits[:_DIGITS]}"


def shortened(text: str) -> str:
    """Text as one line of at most 100 characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 3]}..."
