"""The explorer's pages: records in, HTML out. Pure.

Links are relative: the explorer may be served below any path. An entry is one step down from the
other pages. Everything from a journal is escaped. There is no script; a live page reloads itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from urllib.parse import urlencode

from assay.viewer.journals.comparison import VerifierComparison
from assay.viewer.journals.reader import Moment, Rate, Record, Summary

LIVE_S = 3
FIELDS = (
    ("verifier", "verifier"),
    ("verdict", "verdict"),
    ("fault", "fault reason"),
    ("text", "text in prompt, response, ..."),
    ("suspicion", "suspicion"),
    ("request_id", "request"),
    ("item_id", "item"),
    ("label", "label, run=a"),
)
_HERE, _UP = "./", "../"
_SHOWN_CHARS = 90
_BUCKETS = 60


def overview(
    title: str,
    query: Mapping[str, str],
    *,
    summary: Summary,
    rates: Sequence[Rate],
    moments: Sequence[Moment],
    records: Sequence[Record],
    recent: int,
    live: bool,
) -> str:
    """The first page: rates, curves, a search and the newest entries that meet it.

    Args:
        title: name of the file.
        query: the fields of the search that are set.
        summary: of the whole file.
        rates: of the recent entries, by verifier.
        moments: of the recent entries, by second.
        records: entries, oldest first.
        recent: how many of the newest entries rates and curves cover.
        live: the page reloads itself.
    """
    toggle = dict(query) if live else {**query, "live": "1"}
    parts = [
        _header(title, _facts(summary), f'<a href="./?{_query(toggle)}">{_toggled(live)}</a>'),
        _search(query, live),
        f"<h2>Rates of the newest {min(recent, summary.entries)} entries</h2>",
        _rates(rates),
        _charts(moments),
        f'<h2>Entries</h2><p><a href="export?{_query(query)}">as JSON Lines</a></p>',
        _entries(records[::-1]),
    ]
    if records:
        older = _query({**query, "before": str(records[0]["id"])})
        parts.append(f'<p><a href="./?{older}">older</a></p>')
    return _page(title, parts, live=live)


def entry(title: str, record: Record) -> str:
    """One entry, with its spans marked in the text."""
    facts = {
        "verdict": None if record["verdict"] is None else f"{record['verdict']}",
        "reward": None if record["reward"] is None else f"{record['reward']:.6g}",
        "fault": record["fault"],
        "explanation": record["explanation"],
        "answer": record["answer"],
        "verifier": f"{record['verifier'] or '(none found)'} {record['version']}",
        "suspicions": ", ".join(record["suspicions"]),
        "time": _when(record["time_s"]),
        "timings": f"queued {record['queue_s'] * 1e3:.1f} ms, executed "
        f"{record['execution_s'] * 1e3:.1f} ms" + (", from the cache" * record["from_cache"]),
        "request": record["request_id"],
        "item": record["item_id"],
        "group": record["group_id"],
        "task": record["task"],
        "labels": ", ".join(f"{name}={value}" for name, value in record["labels"].items()),
    }
    shown = {name: value for name, value in facts.items() if value}
    number = record["id"]
    parts = [
        _header(title, f"entry {number}", '<a href="../">all entries</a>', up=_UP),
        f'<p><a href="{number - 1}">older</a> <a href="{number + 1}">newer</a></p>',
        "<dl>"
        + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in shown.items())
        + "</dl>",
    ]
    if record["components"]:
        rows = "".join(
            f"<tr><td>{escape(name)}<td class=n>{score:.6g}<td class=n>{weight:.6g}</tr>"
            for name, score, weight in record["components"]
        )
        parts.append(
            "<h2>Components</h2><table><tr><th>name<th class=n>score<th class=n>weight</tr>"
            f"{rows}</table>"
        )
    for role, content in record["prompt"]:
        parts.append(f"<h2>Prompt, {escape(role)}</h2><pre>{escape(content)}</pre>")
    parts.append(_response(record))
    if record["reference"] is not None:
        parts.append(f"<h2>Reference</h2><pre>{escape(record['reference'])}</pre>")
    return _page(f"{number} - {title}", parts, up=_UP)


def comparison(title: str, names: Sequence[str], result: VerifierComparison | None) -> str:
    """Two verifiers on the same items.

    Args:
        title: name of the file.
        names: the verifiers of this journal.
        result: the comparison; None where no two were chosen.
    """
    chosen = ("", "") if result is None else (result.first, result.second)
    pick = "".join(
        f"<select name={key}>"
        + "".join(
            f"<option{' selected' if name == now else ''}>{escape(name)}</option>" for name in names
        )
        + "</select> "
        for key, now in zip("ab", chosen, strict=True)
    )
    parts = [
        _header(title, "two verifiers on the same items", '<a href="./">all entries</a>'),
        f"<form action=compare>{pick}<button>compare</button></form>",
    ]
    if result is not None:
        parts += _compared(result)
    return _page(f"compare - {title}", parts)


def message(title: str, text: str, *, of_entry: bool = False) -> str:
    """A page with one message; `of_entry`: it stands where an entry would."""
    up = _UP if of_entry else _HERE
    link = f'<a href="{up}">all entries</a>'
    return _page(title, [_header(title, "", link, up=up), f"<p>{escape(text)}</p>"], up=up)


def marked(text: str, spans: Sequence[Sequence[object]], answer: str | None = None) -> str:
    """A text with its spans marked, as HTML. Without its tags it is the text, escaped.

    Args:
        text: as it is kept; it may be cut.
        spans: [start, end, reward, label, turn] in code points, of this text; sorted.
        answer: its last occurrence outside of the spans is marked too.
    """
    parts: list[str] = []
    at = 0
    for start, end, reward, label, *_ in spans:
        first = min(max(int(str(start)), at), len(text))
        last = min(max(int(str(end)), first), len(text))
        value = float(str(reward))
        kind = "up" if value > 0 else "down" if value < 0 else "none"
        hint = escape(f"{label}: {value:.4g}")
        parts += [
            escape(text[at:first]),
            f'<mark class={kind} title="{hint}">{escape(text[first:last])}</mark>',
        ]
        at = last
    rest = text[at:]
    found = rest.rfind(answer) if answer else -1
    if answer and found >= 0:
        after = found + len(answer)
        parts += [
            escape(rest[:found]),
            f"<mark class=answer title=answer>{escape(answer)}</mark>",
            escape(rest[after:]),
        ]
    else:
        parts.append(escape(rest))
    return "".join(parts)


def _page(title: str, parts: Sequence[str], *, live: bool = False, up: str = _HERE) -> str:
    again = f'<meta http-equiv=refresh content="{LIVE_S}">' if live else ""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width">'
        f"<title>{escape(title)}</title><link rel=stylesheet href={up}style.css>{again}"
        "</head><body>" + "\n".join(parts) + "</body></html>\n"
    )


def _header(title: str, facts: str, link: str, *, up: str = _HERE) -> str:
    return (
        f"<header><h1>{escape(title)}</h1><span class=facts>{escape(facts)}</span>{link}"
        f"<a href={up}compare>compare two verifiers</a></header>"
    )


def _facts(summary: Summary) -> str:
    return f"{summary.entries} entries, {summary.expired} expired, {summary.dropped} dropped" + (
        f"; newest {_when(summary.last_s)}" if summary.last_s is not None else ""
    )


def _toggled(live: bool) -> str:
    return "stop" if live else "live"


def _search(query: Mapping[str, str], live: bool) -> str:
    inputs = "".join(
        f'<input name={name} placeholder="{hint}" value="{escape(query.get(name, ""))}">'
        for name, hint in FIELDS
    )
    only = "".join(
        f'<option value="{value}"{" selected" if query.get("only", "") == value else ""}>{text}'
        for value, text in (("", "all"), ("judgements", "judgements"), ("faults", "faults"))
    )
    keep = "<input type=hidden name=live value=1>" if live else ""
    return (
        f"<form action=./>{inputs}<select name=only>{only}</select>{keep}"
        "<button>search</button></form>"
    )


def _rates(rates: Sequence[Rate]) -> str:
    rows = []
    for rate in rates:
        total = rate.judgements + rate.faulted
        mean = "" if rate.mean_reward is None else f"{rate.mean_reward:.4g}"
        said = [
            _link({"verifier": rate.verifier, "verdict": name}, f"{name} {n}")
            for name, n in rate.verdicts.items()
        ]
        faults = [
            _link({"verifier": rate.verifier, "fault": name}, f"{name} {n}")
            for name, n in rate.faults.items()
        ]
        rows.append(
            f"<tr><td>{_link({'verifier': rate.verifier}, rate.verifier or '(none found)')}"
            f"<td class=n>{total}<td class=n>{mean}<td class=n>{100 * rate.faulted / total:.1f} %"
            f"<td>{', '.join(said)}<td class=fault>{', '.join(faults)}</tr>"
        )
    return (
        "<table><tr><th>verifier<th class=n>items<th class=n>mean reward<th class=n>faults"
        "<th>verdicts<th>reasons</tr>" + "".join(rows) + "</table>"
    )


def _charts(moments: Sequence[Moment]) -> str:
    if len(moments) < 2:
        return ""
    first, last = moments[0].second, moments[-1].second
    width_s = max(1, -(-(last - first + 1) // _BUCKETS))
    judged, faulted, rewards = ([0.0] * _BUCKETS for _ in range(3))
    for moment in moments:
        n = (moment.second - first) // width_s
        judged[n] += moment.judged
        faulted[n] += moment.faulted
        rewards[n] += moment.rewards
    used = (last - first) // width_s + 1
    mean = [(n, rewards[n] / judged[n]) for n in range(used) if judged[n]]
    share = [
        (n, faulted[n] / (judged[n] + faulted[n])) for n in range(used) if judged[n] + faulted[n]
    ]
    items = [(n, (judged[n] + faulted[n]) / width_s) for n in range(used)]
    span = f"{_when(first)} to {_when(last)}"
    return (
        "<div class=charts>"
        + _chart("reward", "mean reward", mean, used)
        + _chart("faults", "share of faults", share, used, low=0.0)
        + _chart("items", "items a second", items, used, low=0.0)
        + f"</div><p class=facts>{span}, a point for each {width_s} s</p>"
    )


def _chart(
    kind: str,
    caption: str,
    points: Sequence[tuple[int, float]],
    width: int,
    low: float | None = None,
) -> str:
    if not points:
        return ""
    values = [value for _, value in points]
    bottom, top = (min(values) if low is None else low), max(values)
    height = top - bottom or 1.0
    line = " ".join(
        f"{100 * x / max(1, width - 1):.2f},{29 - 28 * (value - bottom) / height:.2f}"
        for x, value in points
    )
    return (
        f'<figure><svg viewBox="0 0 100 30" preserveAspectRatio=none role=img>'
        f"<polyline class={kind} points='{line}'></polyline></svg>"
        f"<figcaption>{caption}: {bottom:.3g} to {top:.3g}, now {values[-1]:.3g}</figcaption>"
        "</figure>"
    )


def _entries(records: Sequence[Record]) -> str:
    rows = []
    for record in records:
        if record["fault"] is None:
            said = escape(record["verdict"])
            reward = f"{record['reward']:.4g}"
        else:
            said, reward = f"<span class=fault>{escape(record['fault'])}</span>", ""
        odd = " <span class=odd>suspicious</span>" if record["suspicions"] else ""
        rows.append(
            f'<tr><td class=n><a href="entry/{record["id"]}">{record["id"]}</a>'
            f"<td>{_when(record['time_s'])[11:]}<td>{escape(record['verifier'])}"
            f"<td>{said}{odd}<td class=n>{reward}<td class=text>{escape(_short(record))}</tr>"
        )
    if not rows:
        return "<p>No entry.</p>"
    return (
        "<table><tr><th class=n>id<th>time<th>verifier<th>said<th class=n>reward<th>response</tr>"
        + "".join(rows)
        + "</table>"
    )


def _response(record: Record) -> str:
    response, spans = record["response"], record["spans"]
    if response is None:
        return "<h2>Response</h2><p>None could be read.</p>"
    if not record["is_dialogue"]:
        kept = len(response)
        parts = [f"<h2>Response</h2><pre>{marked(response, spans, record['answer'])}</pre>"]
    else:
        kept = sum(len(content) for _, content, _ in response)
        parts = []
        for index, (role, content, own) in enumerate(response):
            text = marked(content, [span for span in spans if span[4] == index])
            whose = " (the policy)" if own else ""
            parts.append(f"<h2>Turn {index}, {escape(role)}{whose}</h2><pre>{text}</pre>")
    if any(record["calls"]):
        told = escape(json.dumps(record["calls"], ensure_ascii=False, indent=1))
        parts.append(f"<h2>Tool calls, by turn</h2><pre>{told}</pre>")
    if kept < record["response_chars"]:
        parts.append(f"<p>Cut: {kept} of {record['response_chars']} characters are kept.</p>")
    return "".join(parts)


def _compared(result: VerifierComparison) -> list[str]:
    first, second = escape(result.first), escape(result.second)
    rows = "".join(
        f"<tr><td>{escape(a)}<td>{escape(b)}<td class=n>{items}</tr>"
        for (a, b), items in result.verdicts.most_common()
    )
    faults = ", ".join(
        f"{name} {reason} {n}"
        for name, counts in zip((result.first, result.second), result.faults, strict=True)
        for reason, n in counts.most_common()
    )
    means = ""
    if result.judged:
        a, b = (total / result.judged for total in result.rewards)
        means = f" Mean reward {a:.4g} and {b:.4g}; the same on {result.same_reward}."
    unjudged = f"{result.faulted} without a judgement of both{': ' * bool(faults)}{faults}."
    parts = [
        f"<p>{result.judged} items that both judged.{means} {escape(unjudged)}</p>",
    ]
    if rows:
        parts.append(f"<table><tr><th>{first}<th>{second}<th class=n>items</tr>{rows}</table>")
    if result.examples:
        parts.append("<h2>Where rewards differ</h2>")
        parts.append(_entries([record for pair in result.examples for record in pair]))
    return parts


def _short(record: Record) -> str:
    response = record["response"]
    if isinstance(response, list):
        response = " / ".join(content for _, content, _ in response)
    flat = " ".join((response or "").split())
    return flat if len(flat) <= _SHOWN_CHARS else f"{flat[: _SHOWN_CHARS - 3]}..."


def _when(time_s: float) -> str:
    return datetime.fromtimestamp(time_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _query(query: Mapping[str, str]) -> str:
    return escape(urlencode({name: value for name, value in query.items() if value}))


def _link(query: Mapping[str, str], text: str) -> str:
    return f'<a href="./?{_query(query)}">{escape(text)}</a>'
