"""A run and a journal in which every text was written by an attacker of whoever reads them."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from assay.reward_server.journal.entries import Entry
from assay.reward_server.journal.store import MIN_LIMIT_BYTES, Store
from viewer_browser_support import metric_rows, rollout, write_step

TOWER = "Z" + "\u0301\u0322\u0353\u035b\u0489" * 60
TEXTS = (
    "<script>pwned=1</script>",
    "<img src=x onerror=pwned=1>",
    "\"><svg onload=pwned=1>'",
    "' onmouseover='pwned=1' autofocus onfocus='pwned=1",
    "javascript:pwned=1",
    "<a href=javascript:pwned=1>✓ correct</a>",
    "{{constructor.constructor('pwned=1')()}} ${pwned=1} <%= pwned=1 %>",
    "<iframe srcdoc='<script>top.pwned=1</script>'></iframe>",
    "<style>@import 'http://evil.example/x.css'; * {display:none}</style>",
    "<link rel=stylesheet href=//evil.example/x.css><base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "</pre></main><dialog open><h2>Keys</h2><form action=//evil.example></form>",
    "url(http://evil.example/a);position:fixed;inset:0;background:red",
    "&lt;script&gt;pwned=1&#x3c;/script>&nbsp;",
    "half \ud800 a pair, \udfff the other",
    "nul \0 bell \x07 escape \x1b[31m del \x7f",
    "\u202etcerroc \u2713\u202c \u2066 open \u202dforced",
    "un\u200bseen \u2060\ufeff \U000e0041\U000e0042",
    TOWER,
    "__proto__",
    "constructor",
    "hasOwnProperty\nSet-Cookie: a=b\r\n\r\n",
    "?view=sources&source=a#b%00%0a../../etc/passwd",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f4 9\ufe0f\u20e3",
    "✓ correct 1.000\nVerdict ✓ correct\nAssay / Runs / Items",
    "W" * 300,
    " ",
    "\n",
)
MEGABYTE = "<b>" * 350_000
LINES = "".join(f"{n}\n" for n in range(100_000))
RUN, JOURNAL = "<img src=x onerror=pwned=1>&'\"", "journal <svg onload=pwned=1>.sqlite"


def hostile_run(folder: Path) -> Path:
    """A run whose folder, settings, metrics, rollouts, vocabulary, timeline, notes are hostile."""
    run = folder / RUN
    rows = [_row(n, text) for n, text in enumerate([*TEXTS, MEGABYTE, LINES])]
    write_step(run, "000001", rows)
    write_step(
        run, "000001.eval", [{**_row(n, text), "phase": "eval"} for n, text in enumerate(TEXTS[:3])]
    )
    write_step(run, "000002", [_strange(n, value) for n, value in enumerate(_VALUES)])
    odd = "".join(f"{json.dumps(text)}: 0.5, " for text in TEXTS)
    (run / "metrics.jsonl").write_text(
        metric_rows([1, 2])
        + f'{{"step": 3, "reward": NaN, "correct": 1e400, {odd}"reward_std": "{{}}"}}\n'
        + f'{{"step": 4, "reward": 1e308, "correct": -1e308, {odd}"kl": null}}\n'
        + '{"step": "<b>", "reward": 1}\n[1]\n{"step": 5, "__proto__": {"polluted": 1}}\n',
        encoding="utf-8",
    )
    texts = [text for text in TEXTS if text.isprintable() and not _halves(text)]
    (run / "config.toml").write_text(
        "".join(
            f"[{table}]\n{name} = {json.dumps(texts[n])}\n"
            for n, (table, name) in enumerate(
                (("model", "name"), ("method", "name"), ("reward", "verifier"), ("data", "path"))
            )
        ),
        encoding="utf-8",
    )
    with gzip.open(run / "rollouts" / "vocabulary.json.gz", "wt", encoding="utf-8") as file:
        pieces = [text.encode("utf-8", "replace").decode("latin-1") for text in TEXTS]
        file.write(json.dumps({"version": 1, "kind": "plain", "pieces": pieces, "special": [0]}))
    (run / "rollouts" / "timeline.jsonl").write_text(
        "".join(
            json.dumps(
                {"step": 1, "process": n % 2, "what": text, "start": 1e9 + n, "end": 1e9 + n + 2}
            )
            + "\n"
            for n, text in enumerate(TEXTS)
        )
    )
    (run / "notes.jsonl").write_text(
        "".join(
            json.dumps({"place": place, "label": label, "text": text, "time_s": 1e9}) + "\n"
            for place, label, text in _notes(run)
        )
    )
    return run


def _notes(run: Path) -> list[tuple[int, str, str]]:
    from assay.viewer.index.schema import place_of

    labels = ("right", "wrong", "exploit", "unsure")
    return [
        (place_of(1, "train", 0, line), labels[line % 4], text) for line, text in enumerate(TEXTS)
    ]


def _halves(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _judgement(n: int, text: str) -> dict[str, Any]:
    short = text[:4000]
    return {
        "reward": (-1.0, 0.0, 1.0)[n % 3], "verdict": short,
        "components": [{"name": short, "score": 0.5, "weight": 1.0, "explanation": short}],
        "spans": [{"start": 0, "end": 3, "reward": -1, "label": short},
                  {"start": -5, "end": 10**9, "reward": 1, "label": short}],
        "extracted_answer": short, "explanation": text, "verifier": short, "version": short,
        "suspicions": [short, "undone-work"],
    }  # fmt: skip


def _row(n: int, text: str) -> dict[str, Any]:
    short = text[:4000]
    judged = n % 5 != 4
    row = rollout(
        1, n // 4, n % 4, problem=short, question=text, reference=text, task=short,
        prompt=[{"role": "user", "content": text}, {"role": short, "content": text}],
        response=text, ids=list(range(len(TEXTS))), tokens=len(TEXTS),
        own=[[0, len(TEXTS), 0, 0, short]], logprobs=[-0.1] * len(TEXTS),
        trained=[[0, 9]], advantages=[[0, 9, 0.5]],
        judgement=_judgement(n, text) if judged else None, reward=0.5 if judged else None,
        fault=None if judged else {"reason": short, "message": text, "code": short,
                                   "metadata": {short or "a": text, "__proto__": text}},
        environment=short, ending=short,
    )  # fmt: skip
    if n % 2:
        call = {"name": short, "arguments": {short or "a": text, "code": text}, "answer": text,
                "facts": {"fault": {"reason": short, "message": text}}, "reward": 0.5,
                "seconds": 0.1, "refused": True, "cached": True}  # fmt: skip
        step = {"agent": short, "context": short, "text": text, "answer": short, "tokens": 3,
                "read": [{"role": short, "content": text}, {"role": "tool", "content": text}],
                "calls": [call], "unanswered": [{"name": short, "arguments": short}],
                "at": 1.0, "seconds": 0.2, "reward": 0.1}  # fmt: skip
        row["episode"] = {"environment": short, "began": 1e9, "steps": [step], "ending": short,
                          "trusted": False, "trains": False}  # fmt: skip
    elif n % 4 == 2:
        row |= {"reference": None, "tests": {"asserts": text, short or "a": [text]}}
    return row


_VALUES: Sequence[Any] = (
    float("nan"), float("inf"), -1e308, 10**400, True, None, "1", [], {}, [[]], {"__proto__": 1},
)  # fmt: skip


def _strange(n: int, value: Any) -> dict[str, Any]:
    """A row with a value of another kind in each place."""
    row = rollout(2, n, 0)
    kept = ("version", "step", "phase", "process", "draw", "sample")
    judgement = dict.fromkeys(row["judgement"], value)
    return {name: old if name in kept else value for name, old in row.items()} | (
        {"judgement": judgement} if n % 2 else {}
    )


def hostile_journal(folder: Path) -> Path:
    """A journal whose every column is hostile, text of no encoding among it."""
    path = folder / JOURNAL
    names = [field.name for field in fields(Entry)]
    store = Store(path, MIN_LIMIT_BYTES)
    texts = [
        text.encode("utf-8", "replace").decode()
        for text in [*TEXTS, MEGABYTE[:60_000], LINES[:60_000]]
    ]
    for n, text in enumerate(texts):
        for verifier in (text[:4000], *["math"] * (n % 3 == 0)):
            entry = _entry(n, text) | {"verifier": verifier}
            assert store.append([tuple(entry[name] for name in names)])
    store.close()
    with sqlite3.connect(path) as database:
        database.execute(
            "UPDATE entries SET response = CAST(x'eda0803cff' AS TEXT), explanation = "
            "CAST(x'ff00fe3c' AS TEXT), answer = CAST(x'c3' AS TEXT), spans = '[[{', "
            "components = '{\"__proto__\": 1}' WHERE id = 2"
        )
    database.close()
    return path


def _entry(n: int, text: str) -> dict[str, Any]:
    short = text[:4000]
    judged = n % 5 != 4
    dialogue = n % 3 == 1
    turns = [[short, text, True, [[short, text]]], [short, text, False]]
    return {
        "time_s": 1e9 + n, "request_id": short, "item_id": short, "group_id": TEXTS[n // 3 % 14],
        "task": short, "verifier": short, "version": short if n % 2 else "5",
        "verdict": short if judged else None, "reward": 0.5 if judged else None,
        "fault": None if judged else short, "explanation": text, "answer": short,
        "components": json.dumps([[short, 0.5, 1.0]]),
        "spans": json.dumps([[0, 3, -1.0, short, 0], [5, 10**9, 1.0, short, 9]]),
        "suspicions": json.dumps([short, "undone-work"]), "queue_s": 0.1, "execution_s": 0.1,
        "from_cache": 1, "prompt": json.dumps([[short, text]]),
        "response": json.dumps(turns) if dialogue else text, "is_dialogue": dialogue,
        "response_chars": len(text), "reference": text, "item_key": str(n).encode().ljust(8, b"0"),
        "labels": json.dumps({"step": str(n % 4), "phase": short, short or "a": short,
                              "__proto__": short}),
        "parameters": json.dumps({short: text}), "reference_kind": ("text", "tests", "data")[n % 3],
        "cut": "[]", "appeal": _appeal(short) if n % 2 else text,
    }  # fmt: skip


def _appeal(text: str) -> str:
    said = {"verifier": text, "version": text, "verdict": text, "reward": 0.5}
    first = {"component": text, "first": said, "second": said | {"verdict": f"{text}2"}}
    return json.dumps(first | {"drawn": True, "probability": 0.5})
