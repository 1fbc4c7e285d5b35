r"""A second look at a form that could not be read as it stands, or in which words were left.

What the web writes so often that it has a rule: products of letters that spell a word (`e^{at}`,
`at + b`), conditions behind an answer (`f(x) = x \text{ for all } x > 0`), indices without their
mark (`x1 < x2`), sets without their braces (`x | x > 1`), a brace too many, statements with a
quantifier, and a sign of comparison as the whole answer.

Every function is linear in the length of its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.math import domains, units, vocabulary
from assay.math.notation import TEXT

MAX_CHARS = 600
_PAIRS = (
    frozenset({word for word in vocabulary.ENGLISH if len(word) == 2 and word.islower()}) | {"in"}
) - {"if", "ft", "m2"}
_PAIR = re.compile(
    rf"{TEXT}\s?\{{[^{{}}]*\}}|\\(?:begin|end)\{{[^{{}}]*\}}|(?<![A-Za-z\\])(?P<pair>[a-z]{{2}})(?![A-Za-z])"
)
_UPRIGHT = re.compile(r"\\mathrm\s?\{\s?([A-Za-z])([A-Za-z])\s?\}")
_BEFORE = frozenset("+-*/=^_({[,|<>")
_BEHIND = frozenset("+-*/=^_)}],|<>\\(")
_CONDITION = re.compile(
    rf"\s*[,;]?\s*\(?\s?(?:{TEXT}\s?\{{\s*[,;]?\s*|(?<=[\s,]))\(?"
    r"(?:where|for (?:all|any constant|some constant|any|every|each|some)|for|with|if|when|whenever"
    r"|such that|provided that|provided|and for)\s*\}?\s*"
    r"(?=[A-Za-z\\|\d-][^,;]{0,24}?(?:[<>=]|\\(?:in|le|ge|ne|lt|gt|leq|geq|neq|leqslant|geqslant)\b))"
)
_LAST_BRACKET = re.compile(
    r"(?<=\S)\s?,?\s?\(([^()]{1,80}(?:[<>]|\\(?:in|le|ge|ne|leq|geq|neq|leqslant|geqslant)\b)"
    r"[^()]{1,80})\)(\s?\\\})?$"
)
_MEMBERS = re.compile(
    rf"\s?,?\s?(?:{TEXT}\s?\{{\s?,?\s?)?(?:for|where|with)\s?\}}?\s?"
    r"(?:(?:some |any |every |all |each |an? )?(?P<kind>(?:positive |negative |non-?negative )?"
    r"(?:integers?|real numbers?|reals|real|natural numbers?))\s?(?:values of )?\s?\}?\s?"
    r"(?P<names>[a-z](?:\s?,\s?[a-z]){0,3})"
    rf"|(?P<name>[a-z])\s?(?:{TEXT}\s?\{{)?\s?is (?:an?|any|some) (?:fixed |arbitrary |given )?"
    r"(?P<is>(?:positive |negative |non-?negative )?(?:integer|real number|real constant)))"
    r"(?:\s?\})?$"
)
_TWO_NAMES = re.compile(
    rf"\s?,?\s?(?:{TEXT}\s?\{{\s?)?(?:for|where|with)\s?\}}?\s?"
    r"([a-z])\s?(?:,|and)\s?([a-z])\s?(\\in\s?[^,;]{1,40})$"
)
_BARE_INTEGER = re.compile(r"\s?,\s?(?:any|every|all) integers?\s?([a-z])$")
_TAIL_FOR_ALL = re.compile(r"(?<=\S)\s?,?\s?\\forall\s?(?:([a-z]\s?\\in.{1,40})|[a-z])$")
_INDEX = re.compile(r"(?<![A-Za-z\\])([a-zA-Z])(\d)(?![\d.^]|\s?\()|(?<=\d)([a-z])(\d)(?![\d.^])")
_BUILDER = re.compile(r"(\{?)\s?(\\?[A-Za-z]{1,7})\s?(?:\||\\mid)\s?([^|]{1,300}?)(\}?)")
_RELATES = re.compile(r"[<>=]|\\(?:in|le|ge|ne|lt|gt|leq|geq|neq|leqslant|geqslant)\b")
_QUANTIFIER = re.compile(
    rf"(?:\\neg\s?[a-z]\s?:\s?)?(?:{TEXT}\s?\{{\s?)?"
    r"(?:\\(?P<sign>forall|exists)|(?P<all>for (?:all|every|any|each))"
    r"|(?P<one>there (?:exists?|is)(?: an?| some)?))(?![a-z])\s?\}?\s?",
    re.IGNORECASE,
)
_IF_THEN = re.compile(
    rf"\"?(?:{TEXT}\s?\{{\s?)?[Ii]f\s?\}}?\s?(?P<if>.{{1,200}}?)\s?,\s?"
    rf"(?:{TEXT}\s?\{{\s?)?then\s?\}}?\s?(?P<then>.{{1,200}})"
)
_SUCH_THAT = re.compile(
    rf"\s?,?\s?(?:(?:{TEXT}\s?\{{\s?)?,?\s?(?:such that|so that|we have|it holds that)\s?\}}?|,)\s?"
)


def products(form: str) -> str:
    r"""The form with pairs of letters that spell a word, like the `at` of `e^{at}`, spaced apart.

    Only where operators, braces or the form's ends stand on both sides, so that a unit behind a
    number and a word in a sentence stay what they are.
    """
    if len(form) > MAX_CHARS:
        return form

    def spaced(match: re.Match[str]) -> str:
        pair = match["pair"]
        if pair is None:
            upright = _UPRIGHT.fullmatch(match[0])
            before = form[: match.start()].rstrip(" ~\\,")[-1:]
            if upright is None or before.isdigit() or before == "}":
                return match[0]
            return f" {upright[1]} {upright[2]}"
        return f"{pair[0]} {pair[1]}" if pair in _PAIRS and _is_product(form, match) else match[0]

    return _PAIR.sub(spaced, form)


def _is_product(form: str, match: re.Match[str]) -> bool:
    start, end = match.span("pair")
    before, behind = form[:start].rstrip()[-1:], form[end:].lstrip()[:1]
    if not (before or behind) or (behind and behind not in _BEHIND):
        return False
    if not before or before in _BEFORE:
        return True
    if not (before.isdigit() or before in "})") or not behind:
        return False
    unit = units.parse(match["pair"])
    return unit is None or not unit.known


def forms(form: str) -> Iterator[str]:
    """Ways to write the form so that it may be read, from the least change to the largest."""
    if len(form) > MAX_CHARS:
        return
    for change in (_unbraced, products, _conditional, _indexed, _built):
        changed = change(form)
        if changed and changed != form:
            form = changed
            yield form


def _unbraced(form: str) -> str:
    """The form without a brace at its end that nothing opened."""
    plain = form.replace("\\{", "").replace("\\}", "")
    if not form.endswith("}") or form.endswith("\\}"):
        return form
    return form[:-1].rstrip() if plain.count("}") == plain.count("{") + 1 else form


def _conditional(form: str) -> str:
    r"""The form with a comma for `\text{ for all }`, `where` and brackets round a condition."""
    form = _MEMBERS.sub(_memberships, form)
    form = _TWO_NAMES.sub(r", \1 \3, \2 \3", form)
    form = _BARE_INTEGER.sub(r", \1 \\in \\mathbb{Z}", form)
    form = _TAIL_FOR_ALL.sub(lambda found: f", {found[1]}" if found[1] else "", form)
    changed = _CONDITION.sub(", ", form)
    if changed != form and changed.endswith(")") and changed.count(")") > changed.count("("):
        changed = changed[:-1]
    return _LAST_BRACKET.sub(lambda found: f", {found[1]}{found[2] or ''}", changed).strip(" ,")


def _memberships(match: re.Match[str]) -> str:
    """`for all real numbers t` as a membership of each name."""
    kind = match["kind"] or match["is"]
    letter = "R" if "real" in kind else "N" if "natural" in kind else "Z"
    signs = {"positive": "^+", "negative": "^-", "non-negative": "_{\\ge 0}"}
    sign = signs.get(kind.partition(" ")[0].replace("nonn", "non-n"), "")
    names = (match["names"] or match["name"]).split(",")
    members = domains.rewritten(f"\\in \\mathbb{{{letter}}}{sign}")
    return "".join(f", {name.strip()} {members}" for name in names)


def _indexed(form: str) -> str:
    return _INDEX.sub(lambda found: f"{found[1] or found[3]}_{found[2] or found[4]}", form)


def _built(form: str) -> str:
    r"""`x | x > 1` and `{x | x > 1}` as `\{x \mid x > 1\}`."""
    match = _BUILDER.fullmatch(form)
    if match is None or bool(match[1]) != bool(match[4]) or not _RELATES.search(match[3]):
        return form
    return f"\\{{{match[2]} \\mid {match[3]}\\}}"


def quantified(form: str) -> tuple[str, str, str] | None:
    """`forall`, `exists` or `implies`, what it is about, and what is said of it; else None."""
    if len(form) > MAX_CHARS:
        return None
    implied = _IF_THEN.fullmatch(form)
    if implied is not None:
        return "implies", implied["if"], implied["then"].rstrip(' .}"')
    match = _QUANTIFIER.match(form)
    if match is None:
        return None
    joint = _SUCH_THAT.search(form, match.end())
    if joint is None:
        return None
    name = match["sign"] or ("forall" if match["all"] else "exists")
    return (
        name.lower(),
        form[match.end() : joint.start()],
        _unbraced(form[joint.end() :].rstrip(" .")),
    )
