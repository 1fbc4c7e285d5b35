"""Careless graders put together from parts, over the rows of the planted graders: what is found.

Each is `read the answer as the prompt shows it` and one careless comparison of it with the
reference: a normalisation that drops something, a set for a list, a prefix, a tolerance. One is
defective for a kind of rows where some edit of a reference is refused by every sound grader of that
kind (tests/planted_graders), and accepted by the careless one. The audit's probes of the kind,
asked once of its sound graders, are then put to all of them: who accepts one is found. So a
class of carelessness that no probe meets is seen before anybody plants it. A probe that must be
refused and that a sound grader accepts is a false alarm, and is printed.

    python -m bench audit-composed [--only KIND] [--rows 24] [--missed]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import re
import string
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from assay.audit import AuditPlan, AuditRow, ProbeAsker, Ruling, carry_out
from assay.audit.engines.floor import FloorAndCeiling
from assay.audit.engines.metamorphic import Metamorphic
from assay.audit.engines.panel import ProbePanel
from assay.audit.probes import Probe
from bench.audit_detection import GRADERS, grader_of, rows_of, share, within

Compare = Callable[[str, str], bool]
_EDITS = 80
_CALL_S = 0.5
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORD = re.compile(r"\w+|[^\w\s]")


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _items(text: str) -> list[str]:
    return [one.strip() for one in re.split(r"[,;\n|]|\s+and\s+", text) if one.strip()]


def _numbers(text: str) -> list[float]:
    return [float(one) for one in _NUMBER.findall(text)]


def _only(pattern: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, "", text)


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _unordered(text: str) -> Any:
    """JSON without the order of lists."""

    def flat(value: Any) -> Any:
        if isinstance(value, dict):
            return sorted((key, flat(one)) for key, one in value.items())
        return sorted(map(repr, map(flat, value))) if isinstance(value, list) else value

    return repr(flat(json.loads(text)))


def _texts(value: Any) -> Any:
    """JSON with its scalars as texts."""
    if isinstance(value, dict):
        return {key: _texts(one) for key, one in value.items()}
    return [_texts(one) for one in value] if isinstance(value, list) else str(value).casefold()


def _filled(value: Any) -> Any:
    """JSON without what is empty."""
    if isinstance(value, dict):
        return {key: one for key, raw in value.items() if (one := _filled(raw))}
    return [one for raw in value if (one := _filled(raw))] if isinstance(value, list) else value


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return sorted(itertools.chain.from_iterable(map(_leaves, inner)))
    return [repr(value)]


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        return sorted([*value, *itertools.chain.from_iterable(map(_keys, value.values()))])
    return (
        sorted(itertools.chain.from_iterable(map(_keys, value))) if isinstance(value, list) else []
    )


def _low_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key.casefold(): _low_keys(one) for key, one in value.items()}
    return list(map(_low_keys, value)) if isinstance(value, list) else value


def _rounded(text: str) -> str:
    return _NUMBER.sub(lambda one: str(round(float(one[0]))), text)


def _value(text: str) -> float:
    if not re.fullmatch(r"[\d\s.+*/()-]{1,60}", text) or "**" in text:
        raise ValueError
    return float(eval(text, {"__builtins__": {}}))


NORMALS: Mapping[str, Callable[[str], Any]] = {
    "case": str.casefold,
    "blanks": _only(r"\s"),
    "signs": _only(r"[^\w\s]"),
    "signs-and-blanks": _only(r"[\W_]"),
    "points": _only(r"\."),
    "minus": _only(r"[-\u2212]"),
    "hyphens-to-blanks": lambda text: text.replace("-", " "),
    "quotes": _only(r"[\"'`]"),
    "brackets": _only(r"[()\[\]{}]"),
    "in-brackets": _only(r"\([^)]*\)"),
    "commas": _only(","),
    "colons": _only("[:;]"),
    "slashes": _only(r"[/\\]"),
    "digits-alone": _only(r"\D"),
    "letters-alone": _only(r"[^A-Za-z]"),
    "no-digits": _only(r"\d"),
    "no-letters": _only(r"[^\W\d_]"),
    "zeros-before": _only(r"\b0+(?=\d)"),
    "zeros-behind": _only(r"0+\b"),
    "articles": _only(r"(?i)\b(?:a|an|the|of|and)\b"),
    "small-words": _only(r"(?i)\b(?:not|no|a|an|the|of|and|or|in|on|to|is|with|by|from)\b"),
    "ascii": _ascii,
    "compatible": lambda text: unicodedata.normalize("NFKC", text),
    "first-line": lambda text: text.strip().partition("\n")[0].strip(),
    "last-line": lambda text: text.strip().rpartition("\n")[2].strip(),
    "first-word": lambda text: _words(text)[0],
    "last-word": lambda text: _words(text)[-1],
    "first-letters": lambda text: [one[0] for one in _words(text)],
    "first-number": lambda text: _numbers(text)[0],
    "last-number": lambda text: _numbers(text)[-1],
    "numbers": _numbers,
    "numbers-sorted": lambda text: sorted(_numbers(text)),
    "numbers-unsigned": lambda text: list(map(abs, _numbers(text))),
    "numbers-sum": lambda text: (sum(_numbers(text)), len(_numbers(text))),
    "numbers-set": lambda text: set(_numbers(text)),
    "largest": lambda text: max(_numbers(text)),
    "words-set": lambda text: set(_words(text)),
    "words-counted": lambda text: Counter(_words(text)),
    "words-of-letters": lambda text: re.findall(r"[^\W\d_]+", text),
    "letters-sorted": lambda text: "".join(sorted(text)),
    "letters-set": set,
    "letter-runs": lambda text: re.sub(r"(.)\1+", r"\1", text),
    "items-set": lambda text: set(_items(text)),
    "items-sorted": lambda text: sorted(_items(text)),
    "items-first": lambda text: _items(text)[0],
    "items-last": lambda text: _items(text)[-1],
    "items-two": lambda text: _items(text)[:2],
    "items-three": lambda text: _items(text)[:3],
    "items-count": lambda text: len(_items(text)),
    "items-no-repeats": lambda text: list(dict.fromkeys(_items(text))),
    "items-words-sorted": lambda text: [sorted(_words(one)) for one in _items(text)],
    "ends-and-count": lambda text: (_items(text)[0], _items(text)[-1], len(_items(text))),
    "words-ends": lambda text: (_words(text)[0], _words(text)[-1], len(_words(text))),
    "lines-set": lambda text: set(text.strip().splitlines()),
    "lines-sorted": lambda text: sorted(text.strip().splitlines()),
    "lines-words-sorted": lambda text: [sorted(_words(one)) for one in text.splitlines()],
    "keys-last": lambda text: {a.strip(): b.strip() for a, b in (
        re.split(r"[:=]|\bis\b", one, maxsplit=1) for one in _items(text))},
    "keys-first": lambda text: {a.strip(): b.strip() for a, b in (
        re.split(r"[:=]|\bis\b", one, maxsplit=1) for one in reversed(_items(text)))},
    "value-to-second-sign": lambda text: [re.split("[:=]", one)[:2] for one in _items(text)],
    "values-sorted": lambda text: sorted(re.split("[:=]|is", one, maxsplit=1)[1].strip()
                                         for one in _items(text)),
    "pairs-sorted": lambda text: [sorted(re.split(r"\s*(?:->|[:=<>])\s*", one))
                                  for one in _items(text)],
    "five-letters": lambda text: text[:5],
    "twelve-letters": lambda text: text[:12],
    "last-letters": lambda text: text[-4:],
    "length": len,
    "whole-numbers": lambda text: re.sub(r"(\d)\.\d+", r"\1", text),
    "rounded": _rounded,
    "figures-sorted": lambda text: sorted(re.sub(r"\D", "", text)),
    "before-comma": lambda text: re.split("[,;(]", text)[0].strip(),
    "behind-comma": lambda text: re.split("[,;]", text)[-1].strip(),
    "before-colon": lambda text: text.partition(":")[0],
    "behind-colon": lambda text: text.rpartition(":")[2].strip(),
    "before-equals": lambda text: text.partition("=")[0],
    "behind-equals": lambda text: text.rpartition("=")[2].strip(),
    "before-slash": lambda text: text.partition("/")[0],
    "last-path": lambda text: text.rstrip("/").rpartition("/")[2],
    "before-hyphen": lambda text: text.partition("-")[0],
    "before-bracket": lambda text: re.split(r"[(\[{<]", text)[0],
    "between-hyphens": lambda text: sorted(text.split("-")),
    "between-slashes": lambda text: sorted(text.split("/")),
    "between-colons": lambda text: sorted(text.split(":")),
    "between-points": lambda text: sorted(text.split(".")),
    "bits": lambda text: [sum(1 << ord(one) % 64 for one in word) for word in _words(text)],
    "evaluated": _value,
    "json-unordered": _unordered,
    "json-texts": lambda text: _texts(json.loads(text)),
    "json": json.loads,
    "json-filled": lambda text: _filled(json.loads(text)),
    "json-leaves": lambda text: _leaves(json.loads(text)),
    "json-keys": lambda text: _keys(json.loads(text)),
    "json-low-keys": lambda text: _low_keys(json.loads(text)),
    "json-case": lambda text: json.loads(text.casefold()),
    "json-rounded": lambda text: json.loads(_rounded(text)),
}  # fmt: skip
"""What is compared by equality afterwards; what raises accepts nothing."""


def _f1(a: str, b: str) -> float:
    x, y = Counter(a.casefold().split()), Counter(b.casefold().split())
    return 2 * sum((x & y).values()) / max(1, sum(x.values()) + sum(y.values()))


def _zipped(cut: Callable[[str], Sequence[Any]]) -> Compare:
    return lambda a, b: bool(cut(a)) and all(x == y for x, y in zip(cut(a), cut(b), strict=False))


def _shared(cut: Callable[[str], Sequence[Any]], least: float) -> Compare:
    def compare(a: str, b: str) -> bool:
        hits = sum(x == y for x, y in zip(cut(a), cut(b), strict=False))
        return hits >= least * max(1, len(cut(b)))

    return compare


def _near(relative: float, absolute: float) -> Compare:
    def compare(a: str, b: str) -> bool:
        x, y = _numbers(a), _numbers(b)
        rest = _NUMBER.sub("", a) == _NUMBER.sub("", b)
        return (
            rest
            and len(x) == len(y)
            and all(
                math.isclose(p, q, rel_tol=relative, abs_tol=absolute)
                for p, q in zip(x, y, strict=True)
            )
        )

    return compare


def _subset(a: str, b: str, cut: Callable[[str], Sequence[Any]]) -> bool:
    return bool(cut(a)) and set(cut(a)) <= set(cut(b))


def _off(a: str, b: str, most: int) -> bool:
    """Whether so few letters are inserted, deleted or exchanged."""
    if abs(len(a) - len(b)) > most:
        return False
    before = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
        before = row
    return before[-1] <= most


def _loose_json(a: str, b: str, which: str) -> bool:
    x, y = json.loads(a), json.loads(b)
    if not isinstance(x, dict) or not isinstance(y, dict):
        return False
    if which == "expected":
        return all(x.get(key) == one for key, one in y.items())
    if which == "given":
        return bool(x) and all(y.get(key) == one for key, one in x.items())
    hits = sum(x.get(key) == one for key, one in y.items())
    return hits * 2 >= len(y)


COMPARISONS: Mapping[str, Compare] = {
    "reference-in": lambda a, b: b in a,
    "in-reference": lambda a, b: len(a) > 1 and a in b,
    "word-of-reference": lambda a, b: bool(a) and set(_words(a)) <= set(_words(b)),
    "has-words": lambda a, b: set(_words(b)) <= set(_words(a)),
    "begins": lambda a, b: a.startswith(b),
    "ends": lambda a, b: a.endswith(b),
    "is-begun": lambda a, b: len(a) > 2 and b.startswith(a),
    "is-ended": lambda a, b: len(a) > 2 and b.endswith(a),
    "pattern": lambda a, b: re.match(b, a) is not None,
    "pattern-whole": lambda a, b: re.fullmatch(b, a) is not None,
    "f1-half": lambda a, b: _f1(a, b) >= 0.5,
    "f1-more": lambda a, b: _f1(a, b) >= 0.7,
    "likeness-0.8": lambda a, b: SequenceMatcher(None, a, b).ratio() >= 0.8,
    "likeness-0.9": lambda a, b: SequenceMatcher(None, a, b).ratio() >= 0.9,
    "letter-off": lambda a, b: _off(a, b, 1),
    "two-letters-off": lambda a, b: _off(a, b, 2),
    "same-length": lambda a, b: len(a) == len(b) and a[:1] == b[:1],
    "within-1-percent": _near(0.01, 0.0),
    "within-1": _near(0.0, 1.0),
    "within-0.1": _near(0.0, 0.1),
    "words-zipped": _zipped(_words),
    "items-zipped": _zipped(_items),
    "lines-zipped": _zipped(lambda text: text.strip().splitlines()),
    "numbers-zipped": _zipped(_numbers),
    "words-half": _shared(_words, 0.5),
    "items-half": _shared(_items, 0.5),
    "items-most": _shared(_items, 0.7),
    "lines-half": _shared(lambda text: text.strip().splitlines(), 0.5),
    "items-given": lambda a, b: _subset(a, b, _items),
    "items-there": lambda a, b: _subset(b, a, _items),
    "lines-there": lambda a, b: _subset(b, a, lambda text: text.strip().splitlines()),
    "numbers-there": lambda a, b: _subset(b, a, _numbers),
    "number-in": lambda a, b: bool(_numbers(b)) and _numbers(b)[0] in _numbers(a),
    "at-most": lambda a, b: len(_numbers(a)) == 1 and 0 <= _numbers(a)[0] <= _numbers(b)[0],
    "at-least": lambda a, b: len(_numbers(a)) == 1 and _numbers(a)[0] >= _numbers(b)[0],
    "percent-or-share": lambda a, b: any(
        math.isclose(_numbers(a)[0] * by, _numbers(b)[0]) for by in (1, 100, 0.01)),
    "json-expected": lambda a, b: _loose_json(a, b, "expected"),
    "json-given": lambda a, b: _loose_json(a, b, "given"),
    "json-half": lambda a, b: _loose_json(a, b, "half"),
}  # fmt: skip


def careless() -> dict[str, Compare]:
    """All comparisons, by name; none raises."""

    def equal(made: Callable[[str], Any]) -> Compare:
        return lambda a, b: bool(made(a) == made(b))

    def quiet(compare: Compare) -> Compare:
        def safe(a: str, b: str) -> bool:
            try:
                return compare(a, b)
            except Exception:  # noqa: BLE001 - whatever it raises accepts nothing
                return False

        return safe

    every = {name: quiet(equal(made)) for name, made in NORMALS.items()}
    return every | {name: quiet(compare) for name, compare in COMPARISONS.items()}


# Edits of a reference, of which nothing is known but that a sound grader refuses the result


def _spot(text: str, draws: random.Random) -> int:
    return draws.randrange(len(text)) if text else 0


def _one_edit(  # noqa: C901, PLR0911, PLR0912 - one an edit
    text: str, prompt: str, others: Sequence[str], draws: random.Random
) -> str:
    if not text.strip():
        return text
    parts = re.findall(r"\d+(?:\.\d+)?|[^\W\d_]+|\s+|.", text, re.DOTALL)
    solid = [place for place, one in enumerate(parts) if not one.isspace()] or [0]
    place, at = draws.choice(solid), _spot(text, draws)
    other = draws.choice(others)
    words = re.findall(r"\w+", f"{prompt} {other}")
    pieces = re.split(r"(\s*[,;\n|]\s*)", text)
    match draws.randrange(21):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + text[at : at + 1] * 2 + text[at + 1 :]
        case 2:
            return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]
        case 3:
            return text[:at] + text[at : at + 1].swapcase() + text[at + 1 :]
        case 4:
            sign = draws.choice(string.digits if text[at : at + 1].isdigit() else "abkxz-. ")
            return text[:at] + sign + text[at + 1 :]
        case 5:
            return text[:at] + draws.choice("0179 -.,'\"()xk") + text[at:]
        case 6:
            return "".join([*parts[:place], *parts[place + 1 :]])
        case 7:
            second = draws.choice(solid)
            parts[place], parts[second] = parts[second], parts[place]
            return "".join(parts)
        case 8:
            parts[place] = draws.choice(words)
            return "".join(parts)
        case 9:
            return draws.choice((text.lower(), text.upper(), text.title(), text.swapcase()))
        case 10:
            a, b = draws.randrange(len(pieces)) // 2 * 2, draws.randrange(len(pieces)) // 2 * 2
            pieces[a], pieces[b] = pieces[b], pieces[a]
            return "".join(pieces)
        case 11:
            a = draws.randrange(len(pieces)) // 2 * 2
            return "".join([*pieces[: max(0, a - 1)], *pieces[a + 1 :]]).strip(", ;\n")
        case 12:
            a = draws.randrange(len(pieces)) // 2 * 2
            mark = pieces[1] if len(pieces) > 1 else draws.choice((", ", " ", "\n"))
            more = draws.choice((pieces[a], other, draws.choice(words)))
            return "".join([*pieces[:a], more, mark, *pieces[a:]])
        case 13:
            mark = draws.choice((" ", ", ", "\n", "; "))
            return f"{text}{mark}{draws.choice((other, draws.choice(words), '7', 'not'))}"
        case 14:
            return f"{draws.choice((other, draws.choice(words), 'not', '-', '1'))} {text}"
        case 15:
            numbers = list(re.finditer(r"\d+(?:\.\d+)?", text))
            if not numbers:
                return text
            one = draws.choice(numbers)
            by = draws.choice((1, -1, 2, 12, 0.4, 100))
            new = float(one[0]) + by
            written = str(int(new)) if new == int(new) else f"{new:.6g}"
            return text[: one.start()] + written + text[one.end() :]
        case 16:
            return draws.choice((text.replace("-", "", 1), text.replace("+", "-", 1), f"-{text}"))
        case 17:
            return other
        case 18:
            return draws.choice((text[: at + 1], text[at:]))
        case 19:
            return re.sub(draws.choice((r"\s", r"[\"']", r"[-.,:/]", r"[()\[\]{}]")), "", text)
        case _:
            marked = re.sub(
                r"([^,;\n|]*?)(\s*[:=<>]|->)(\s*)([^,;\n|]*)", r"\4\2\3\1", text, count=1
            )
            return draws.choice((marked, " ".join(text.split()[::-1]), text[::-1]))


def edits(
    text: str, prompt: str, others: Sequence[str], draws: random.Random, count: int = _EDITS
) -> set[str]:
    """Texts that are one, two or three edits from a reference."""
    found = set()
    for _ in range(count):
        new = text
        for _ in range(draws.choice((1, 1, 2, 3))):
            new = _one_edit(new, prompt, others, draws)
        found.add(new)
    return found - {text}


class Kind:
    """The rows of one kind, its sound graders, and how an answer is worn and read."""

    def __init__(self, name: str, manifest: Mapping[str, Any], most: int) -> None:
        told = manifest["rows"][name]
        self.name, self.plain = name, str(told["plain"])
        every = rows_of(told["file"])
        step = max(1, len(every) // most)
        self.rows: list[AuditRow] = every[::step][:most]
        self.sound = [
            (entry["function"], grader_of(entry))
            for entry in manifest["grader"]
            if entry["rows"] == name and not entry["defect"]
        ]
        before, _, behind = self.plain.partition("{reference}")
        self._pattern = re.compile(
            re.escape(before) + r"(.*?)" + re.escape(behind) + r"\s*\Z", re.DOTALL
        )

    def read(self, response: str) -> str | None:
        """The answer as the prompt shows it, the last one; None without it."""
        if self.plain == "{reference}":
            return response.strip()
        places = [one.start() for one in re.finditer(re.escape(self.plain[:4]), response)]
        found = self._pattern.match(response, places[-1]) if places else None
        return found[1].strip() if found else None

    def accepts(self, row: AuditRow, response: str) -> list[str]:
        """The sound graders that accept a response."""
        found = []
        for name, grade in self.sound:
            try:
                with within(_CALL_S):
                    if grade(response, row.data["reference"]) >= 0.5:
                        found.append(name)
            except Exception:  # noqa: BLE001 - whatever a grader raises accepts nothing
                continue
        return found


def probes_of(kind: Kind) -> list[Probe]:
    """What the audit asks of the kind's most lenient sound grader and must be refused."""

    def one(probe: Probe) -> Ruling:
        return Ruling(float(bool(kind.accepts(kind.rows[probe.row], probe.response))))

    asker = ProbeAsker(lambda probes: [one(probe) for probe in probes], AuditPlan(), clock=float)
    engines = [FloorAndCeiling(), ProbePanel(), Metamorphic()]
    found = carry_out(kind.rows, engines, asker, AuditPlan())
    hard = [
        one for one in found.judged
        if one.probe.wants == "refuse" and found.classes[one.probe.kind][1].severity == "hole"
    ]  # fmt: skip
    alarms: dict[str, tuple[str, str]] = {}
    for one_ in hard:
        if found.scale.accepts(one_.said):
            truth = kind.rows[one_.probe.row].truth
            alarms.setdefault(one_.probe.kind, (one_.probe.response[:160], truth.text[:160]))
    for name, (response, right) in alarms.items():
        print(f"FALSE ALARM {kind.name} {name}: {response!r} for {right!r}")
    return [one_.probe for one_ in hard if not found.scale.accepts(one_.said)]


def witnesses(kind: Kind, draws: random.Random) -> list[tuple[AuditRow, str]]:
    """Edits of references that every sound grader refuses."""
    texts = [str(row.data["reference"]) for row in kind.rows]
    found: list[tuple[AuditRow, str]] = []
    for row, text in zip(kind.rows, texts, strict=True):
        others = [one for one in texts if one != text] or [text]
        found += [
            (row, new)
            for new in sorted(edits(text, row.prompt, others, draws))
            if not kind.accepts(row, kind.plain.replace("{reference}", new))
        ]
    return found


def asked(kind: Kind, every: Mapping[str, Compare]) -> Iterator[tuple[str, bool, str]]:
    """For each careless comparison that is defective here: its name, if it is found, a witness."""
    wrong = witnesses(kind, random.Random(kind.name))
    given = []
    for probe in probes_of(kind):
        read = kind.read(probe.response)
        if read is not None:
            given.append((read, str(kind.rows[probe.row].data["reference"])))
    given = list(dict.fromkeys(given))
    for name, compare in every.items():
        seen = [
            (new, str(row.data["reference"])) for row, new in wrong
            if compare(new, str(row.data["reference"]))
        ]  # fmt: skip
        if seen:
            shown = "; ".join(f"{new!r} for {right!r}" for new, right in seen[:2])
            yield name, any(compare(*one) for one in given), shown


def run(options: Sequence[str]) -> None:
    """Puts the audit's probes to all careless graders; prints what is found, by comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench audit-composed", description=__doc__)
    parser.add_argument("--only", default="", help="kinds of rows, with commas between them")
    parser.add_argument("--rows", type=int, default=24, help="so many of each kind")
    parser.add_argument("--missed", action="store_true", help="print witnesses of what was missed")
    chosen = parser.parse_args(options)
    manifest = tomllib.loads((GRADERS / "manifest.toml").read_text(encoding="utf-8"))
    every = careless()
    by_name: dict[str, list[bool]] = defaultdict(list)
    for name in manifest["rows"]:
        if chosen.only and name not in chosen.only.split(","):
            continue
        kind = Kind(name, manifest, chosen.rows)
        found = list(asked(kind, every))
        hits = [one for _, one, _ in found]
        missed = [one for one, hit, _ in found if not hit]
        print(f"{name}: {sum(hits)} of {len(hits)}; missed: {', '.join(missed) or '-'}", flush=True)
        for compare, hit, shown in found:
            by_name[compare].append(hit)
            if chosen.missed and not hit:
                print(f"    {compare}: {shown[:300]}")
    print("\n| comparison | found |\n|---|---|")
    for compare, hits in sorted(by_name.items(), key=lambda one: sum(one[1]) / len(one[1])):
        print(f"| {compare} | {sum(hits)} of {len(hits)} |")
    total = [hit for hits in by_name.values() for hit in hits]
    print(f"all: {share(sum(total), len(total))}")
