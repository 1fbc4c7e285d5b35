"""What an answer says: its normal form, its kind and its tree, with the readings it also allows."""

# ruff: noqa: PLR0911, RUF001 - one case, one return
from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from assay.math import (
    bases,
    domains,
    labels,
    linear,
    moments,
    notation,
    piecewise,
    realset,
    second_look,
    siunitx,
    spelled,
    units,
    wording,
)
from assay.math.building import literal, negated, quotient
from assay.math.lexer import OverLimit, Unreadable, tokenise
from assay.math.nodes import (
    MINUS_ONE,
    Based,
    Call,
    Chain,
    Constant,
    Group,
    Matrix,
    Mul,
    Node,
    Number,
    PlusMinus,
    Quantity,
    SetOperation,
    Symbol,
    Text,
    rebuilt,
    walk,
)
from assay.math.parser import parse
from assay.math.policy import Policy
from assay.math.terms import Term
from assay.math.text import bare, normal, spoken, words

MAX_CHARS = 3000
DEFAULT = Policy()

_PLAIN = re.compile(r"(-?)(\d{1,400}(?:\.\d{1,400})?)")
_DECIMAL_COMMA = re.compile(r"([^\d,;()\[\]]{0,40})(\d{1,30}),(\d{1,30})([^\d,;()\[\]]{0,60})")
_SHORT_EXPONENT = re.compile(r"\d[eE][-+]\d(?!\d)")
_GROUPED = re.compile(r"\d,[1-9]\d{2}(?!\d)")
_ZERO_GROUP = re.compile(r",0\d")
_UNIT_TAIL = re.compile(r"(?<![\\A-Za-z])(?![eE][-+]?\d)[A-Za-z]")
_PAIR = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2}(?![A-Za-z])")
_UPRIGHT_OR_WORD = re.compile(r"[^\\\-+.|]|\\(?:text|math|mbox|hbox|operator|boxed|emph)")
_AMOUNT_IN_WORDS = re.compile(r"-.*circ|\\text\s?\{\s?\d")
_LONGEST_SIGN = 12
_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">=", "in", "notin", "subset", "approx"})
_LETTER = re.compile(r"\(?\s?([A-Z])\s?\)?\.?")
_SAID = re.compile(
    r"[^,;:]*\b(?:is equal to|equals?|is|are|was|must be|evaluates to"
    r"|converges to|simplifies to|measures)\b:?\s*(?=\S)|[A-Za-z' ]{1,60}:\s*(?=\S)"
)
_ANSWER_IS = re.compile(
    rf"{notation.TEXT}\s?\{{\s?(?:(?:[Tt]hus|[Ss]o|[Hh]ence|[Tt]herefore),?\s)?"
    r"[Tt]he (?:final )?answer (?:is|are)\s?:?\s?\}\s?:?\s?(?=\S)"
)
_HEDGED = re.compile(r"\b(?:or|and|not|either|neither|maybe|perhaps|unless|if|isn't|cannot)\b")
_YES_NO = re.compile(r"(yes|no|true|false)(?=\s*(?:[,.;:!]|$))", re.IGNORECASE)
_FORMULA = re.compile(r"[\d=+*/^\\]")
_ANY_YES_NO = re.compile(r"\b(yes|no|true|false)(?=\s*(?:[,.;:!]|$))", re.IGNORECASE)
_OTHER_WAY = re.compile(r"\W*or\b|\W*(?:(?:and|but)\W+)?(?:maybe\W+)?(?:yes|no|true|false|not)\b")
_YES = {"yes": True, "true": True, "no": False, "false": False, "是": True, "否": False,
        "对": True, "错": False, "正确": True, "错误": False, "√": True, "×": False}  # fmt: skip


@dataclass(slots=True, eq=False)
class Reading:
    """An answer that was read; compared and hashed by identity, never changed but for `memo`.

    Attributes:
        text: as given.
        form: the normal form of the text; two texts with one form are one answer.
        kind: number, expression, list, tuple, interval, set, union, equation, inequality, system,
            matrix, ratio, text, choice, boolean or nothing.
        node: the tree; None when the text could not be read as mathematics.
        others: further readings of an ambiguous text, such as 1,22 as 1.22.
        trouble: why it could not be read, or which limit it passes; empty otherwise.
        limited: whether the trouble is a limit.
        integer: the value of an answer that is plain digits; None for any other.
        memo: values of its nodes, computed when first asked for.
    """

    text: str
    form: str
    kind: str
    node: Node | None
    others: tuple[Node, ...] = ()
    trouble: str = ""
    limited: bool = False
    integer: int | None = None
    memo: dict[int, tuple[Node, Term]] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        """The text."""
        return self.text

    def term(self, node: Node) -> Term:
        """The node with its values, which are kept as long as the reading."""
        known = self.memo.get(id(node))
        if known is None:
            known = self.memo[id(node)] = (node, Term(node))
        return known[1]

    @property
    def letter(self) -> str:
        """The choice that the whole answer names; empty when it names none."""
        match = _LETTER.fullmatch(bare(self.form)) if len(self.form) < 40 else None
        return match[1] if match else ""

    @property
    def says_yes(self) -> bool | None:
        """Yes or no, true or false, perhaps with an explanation behind a comma."""
        said = spoken(self.form[:400])
        if said in _YES:
            return _YES[said]
        match = _YES_NO.match(said)
        if match is None or _OTHER_WAY.match(said, match.end()):
            return None
        says = _YES[match[1].lower()]
        if any(_YES[word[1].lower()] != says for word in _ANY_YES_NO.finditer(said)):
            return None
        return says

    @property
    def spoken(self) -> str:
        """The answer as words without spaces."""
        return words(self.form)


def read(text: str, policy: Policy = DEFAULT) -> Reading:
    """Reads an answer. Never raises; work is bounded whatever the text.

    Args:
        text: the answer alone, with or without delimiters.
        policy: knobs that decide how ambiguous texts are read.
    """
    if len(text) > MAX_CHARS:
        form = " ".join(text.split()) if len(text) < 200_000 else text
        trouble = f"longer than {MAX_CHARS} characters"
        return Reading(text, form, "text", None, trouble=trouble, limited=True)
    plain = _PLAIN.fullmatch(text)
    if plain:
        number: Node = literal(plain[2])
        node = Mul((MINUS_ONE, number)) if plain[1] else number
        whole = int(text) if "." not in text else None
        return Reading(text, text, "number", node, integer=whole)
    form = siunitx.rewritten(normal(text))
    if not form:
        return Reading(text, form, "nothing", None, trouble="no answer")
    return _read_form(text, form, policy)


def _read_form(text: str, form: str, policy: Policy) -> Reading:
    special = _special(form)
    if special is not None:
        hour = isinstance(special, Call) and special.name == "time" and ":" not in form
        also = (_attempt(form, thousands=True, scientific=True),) if hour else ()
        return Reading(text, form, _kind(special, form), special, also)
    trouble, limited = "", False
    put = notation.rewritten(notation.money(form))
    try:
        tree = _parsed(put)
        node: Node | None = (_respaced(put, tree) or tree) if _PAIR.search(put) else tree
    except OverLimit as error:
        node, trouble, limited = None, str(error), True
    except Unreadable as error:
        trouble = str(error)
        node = _said(put) or _worded(put) or _looked_at_again(put)
    except RecursionError:
        node, trouble, limited = None, "nested too deep", True
    others = () if limited else _others(put, node, policy)
    if isinstance(node, Chain):
        others = (*others, *_unlabelled(node))
    if ":" in form and isinstance(node, Chain | Group):
        node, others = _twice(node, others)
    if node is not None:
        trouble = ""
        node = node if policy.symbol_case else rebuilt(node, _in_lower_case)
    return Reading(text, form, _kind(node, form), node, others, trouble, limited)


def _in_lower_case(node: Node) -> Node:
    return Symbol(node.name.lower()) if isinstance(node, Symbol) else node


def _special(form: str) -> Node | None:
    """Numbers in words, times, amounts in two units and numbers in a base with letters."""
    if not form[0].isdigit() and len(form) < 160 and _UPRIGHT_OR_WORD.match(form):
        said = spoken(form)
        named = _domain(form)
        if named is not None:
            return named
        number = _spelled(said) if said and spelled.begins(said) else None
        if number is not None:
            return number
    if len(form) < 80 and (form[0].isdigit() or _AMOUNT_IN_WORDS.match(form)):
        amount = notation.compound(form)
        if amount is not None:
            return Quantity(Number(amount[0]), amount[1])
    moment = moments.moment(form)
    if moment is not None:
        return moment
    number = bases.number(form)
    if number is not None:
        return number
    if "ax" in form and "in" in form and (found := labels.extremes(form)):
        return _all_labelled(found)
    return _pieces(form)


def _domain(form: str) -> Node | None:
    """A set of numbers in words, without the numbers that it excepts."""
    found = domains.said(form) if len(form) < 120 else None
    if found is None or not found[1]:
        return None if found is None else found[0]
    left_out = _attempt(found[1], thousands=True, scientific=True)
    items = left_out.items if isinstance(left_out, Group) else (left_out,)
    if any(isinstance(part, Text | Chain) for item in items for part in walk(item)):
        return None
    return SetOperation("difference", (found[0], Group("{", items, "}")))


def _spelled(said: str) -> Node | None:
    """A number in words, perhaps with a unit behind it; None when it is something else."""
    found = spelled.leading(said)
    if found is None or any(len(word) < 2 for word in found[1].split() if word.isascii()):
        return None if found is None or found[1] != "%" else Quantity(Number(found[0]), "%")
    value, unit = found
    if unit == "pi":
        return Mul((Number(value), Constant("pi")))
    known = units.parse(unit) if unit else None
    if (
        unit.isascii() and unit and (known is None or not known.known)
    ):  # two interlinked loops are no 2
        return None
    above = literal(str(abs(value.numerator)))
    size = above if value.denominator == 1 else quotient(above, literal(str(value.denominator)))
    number = negated(size) if value < 0 else size
    return Quantity(number, unit) if unit else number


_IN_PIECES = re.compile(r"\\begin|\b(?:if|for|when|where)\b")


def _pieces(form: str) -> Node | None:
    """A function in pieces; None where the form is none."""
    if _IN_PIECES.search(form) is None:
        return None
    try:
        return piecewise.read(form, _parsed)
    except (Unreadable, OverLimit, RecursionError):
        return None


def _parsed(form: str) -> Node:
    node = hoisted(parse(form))
    return linear.computed(node) if "," in form or "\\begin" in form else node


def _said(form: str) -> Node | None:
    """What a sentence such as `The answer is 4` says at its end; None when it says nothing."""
    lead = _ANSWER_IS.match(form)
    if lead is not None:
        return _wordless(form[lead.end() :])
    if len(form) > 600 or not form[0].isalpha():
        return None
    match = _SAID.match(form)
    if match is None or _HEDGED.search(match[0].lower()):
        return None
    try:
        node = _parsed(form[match.end() :])
    except Unreadable:
        return None
    return None if isinstance(node, Text) else node


def _worded(form: str) -> Node | None:
    """A value with a label before it, a remark behind it, or the parts of an answer."""
    answers = wording.parts(form)
    if answers:
        return _parts(answers)
    labelled = wording.relabelled(form)
    rest = labelled.value if labelled else wording.remark(form)
    if not rest:
        return None
    try:
        node = _parsed(rest)
    except Unreadable:
        node = None
    if labelled is None or not labelled.equals or node is None or isinstance(node, Text):
        return None if isinstance(node, Text) else node
    name = Symbol(f"label {labelled.label}")
    if isinstance(node, Chain):
        return Chain((name, *node.operands), ("=", *node.operators))
    return None if isinstance(node, Group) and not node.opening else Chain((name, node), ("=",))


def _looked_at_again(form: str) -> Node | None:
    """What a second look makes of a form that could not be read; None if it is still words."""
    for look in (_quantified, _comparison, _length):
        node = look(form)
        if node is not None:
            return node
    changed = form
    for changed in second_look.forms(form):
        node = _wordless(changed)
        if node is not None:
            return node
    return _labelled(changed)


def _labelled(form: str) -> Node | None:
    """Values of which each has its words before it; None when the form is no such list."""
    return _all_labelled(labels.parts(form))


def _all_labelled(parts: list[tuple[str, str]]) -> Node | None:
    items = [(words, _wordless(value)) for words, value in parts]
    named = tuple(
        Call("labelled", (Symbol(f"label {words}"), node))
        for words, node in items
        if node is not None
    )
    if not named or len(named) < len(items):
        return None
    return named[0] if len(named) == 1 else Group("", named, "")


def _wordless(form: str) -> Node | None:
    """The tree of a form; None when it cannot be read or has words in it."""
    try:
        node = _parsed(form)
    except (Unreadable, RecursionError):
        return None
    return None if _speaks(node) else node


def _speaks(node: Node) -> bool:
    return any(isinstance(part, Text) and part.words.strip() for part in walk(node))


def _respaced(form: str, node: Node) -> Node | None:
    """The tree with products for the words in it, such as the `at` of `e^{at}`; None without."""
    unit = units.parse(node.unit) if isinstance(node, Quantity) else None
    if not _speaks(node) and (unit is None or unit.known):
        return None
    changed = second_look.products(form)
    return None if changed == form else _wordless(changed)


def _quantified(form: str) -> Node | None:
    """A statement for all, or for some, of what a condition describes."""
    found = second_look.quantified(form)
    if found is None:
        return None
    condition, statement = _wordless(found[1]), _wordless(found[2])
    if not isinstance(condition, Chain | Symbol) or not isinstance(statement, Chain | Group):
        return None
    return Call(found[0], (condition, statement))


def _length(form: str) -> Node | None:
    found = notation.feet_and_inches(bare(form) if form.startswith("\\text") else form)
    return None if found is None else Quantity(Number(found[0]), found[1])


def _comparison(form: str) -> Node | None:
    r"""`>`, `\geqslant` and their like as the whole answer: the name of the sign."""
    if len(form) > _LONGEST_SIGN:
        return None
    try:
        tokens = tokenise(form)
    except Unreadable:
        return None
    one = len(tokens) == 1 and tokens[0].kind == "sign" and tokens[0].value in _COMPARISONS
    return Symbol(f"sign {tokens[0].value}") if one else None


def _parts(answers: list[str]) -> Node | None:
    """The answers to the parts of a problem as a tuple."""
    try:
        items = tuple(map(_parsed, answers))
    except Unreadable:
        return None
    return None if any(isinstance(item, Text) for item in items) else Group("(", items, ")")


def _others(form: str, node: Node | None, policy: Policy) -> tuple[Node, ...]:
    found: list[Node] = []
    comma = _DECIMAL_COMMA.fullmatch(form) if policy.decimal_comma else None
    if comma and not comma[3].strip("0") and not (comma[1] + comma[4]).strip(" -+"):
        comma = None  # 5,0 is 5 and 0; 5,00 euros is an amount
    if comma and (len(comma[3]) != 3 or len(comma[2]) > 3 or comma[2].startswith("0")):
        found.append(_with_point(f"{comma[1]}{comma[2]}.{comma[3]}{comma[4]}"))
    if _GROUPED.search(form) and not _ZERO_GROUP.search(form):  # 10,000 is never 10 and 0
        found.append(_attempt(form, thousands=False, scientific=True))
    if _SHORT_EXPONENT.search(form):
        found.append(_attempt(form, thousands=True, scientific=False))
    for rewrite in (notation.grouped, notation.further):
        other = rewrite(form)
        if other:
            found.append(_attempt(other, thousands=True, scientific=True))
    quantity = _with_unit(form)
    if quantity is not None:
        found.append(quantity)
    length = _length(form)
    if length is not None and length != node:
        found.append(length)
    said = wording.said_value(form)
    if said:
        found.append(_wordless(said) or Text(""))
    stated = wording.statement(form) if isinstance(node, Text) or node is None else ""
    if stated:
        found.append(_attempt(stated, thousands=True, scientific=True))
    return tuple(other for other in found if other not in (Text(""), node))


def _twice(node: Node, others: tuple[Node, ...]) -> tuple[Node, tuple[Node, ...]]:
    """`x < 1 : (-oo, 1)`, one set in two notations, as two readings."""
    chain = node.items[-1] if isinstance(node, Group) else node
    if not isinstance(chain, Chain) or (isinstance(node, Group) and node.opening):
        return node, others
    match chain.operands[-1]:
        case Call("ratio", (bound, Group() | SetOperation() as notation)):
            relation: Node = Chain((*chain.operands[:-1], bound), chain.operators)
            if isinstance(node, Group):
                relation = Group("", (*node.items[:-1], relation), "", node.alternatives)
            one, other = realset.pieces(relation, _real), realset.pieces(notation, _real)
            if one is None or one != other:
                return node, others
            return relation, (*others, notation)
        case _:
            return node, others


def _unlabelled(chain: Chain) -> tuple[Node, ...]:
    """What a label such as `max at` in `max at x = 7` stands before, as a further reading."""
    first = chain.operands[0]
    if len(chain.operands) < 3 or not isinstance(first, Symbol) or " " not in first.name:
        return ()
    return (Chain(chain.operands[1:], chain.operators[1:]),)


def _real(node: Node) -> float | None:
    value = Term(node).constant
    return value if isinstance(value, float) else None


def _with_point(form: str) -> Node:
    """A number, perhaps with a unit, that was written with a decimal comma."""
    node = _attempt(form, thousands=False, scientific=True)
    match node:
        case Number() | Mul((Number(), Number())) | Quantity(Number() | Mul((Number(), Number()))):
            return node
        case _:
            return Text("")


def _attempt(form: str, *, thousands: bool, scientific: bool) -> Node:
    try:
        return hoisted(parse(form, thousands=thousands, scientific=scientific))
    except Unreadable:
        return Text("")


def _with_unit(form: str) -> Node | None:
    """A number with a unit in plain letters, such as 4ft or 10.5 kg m/s^2."""
    match = _UNIT_TAIL.search(form)
    if match is None or not match.start() or len(form) - match.start() > units.MAX_UNIT_CHARS:
        return None
    value, tail = form[: match.start()].rstrip(), form[match.start() :]
    tail = tail.replace("\\text", " ").replace("\\cdot", "*").replace("\\mathrm", " ")
    unit = units.parse(tail)
    if unit is None or not unit.known or not value or value[-1] in "+-/^_(":
        return None
    try:
        node = parse(value.rstrip("*").removesuffix("\\cdot"))
    except Unreadable:
        return None
    if any(isinstance(part, Symbol | Chain | Group | Text) for part in walk(node)):
        return None
    return Quantity(node, tail)


def hoisted(node: Node) -> Node:
    """The tree with units, degrees and percent signs lifted from a product to its outside."""
    match node:
        case Group(opening, items, closing, alternatives):
            return Group(opening, tuple(map(hoisted, items)), closing, alternatives)
        case Chain(operands, operators):
            return Chain(tuple(map(hoisted, operands)), operators)
        case Mul(factors):
            return _hoisted_product(node, factors)
        case Quantity(value, unit):
            inner = hoisted(value)
            factor, unit = notation.scaled(unit)
            if factor != 1:
                inner = Mul((inner, Number(Fraction(factor))))
                return Quantity(inner, unit) if unit else inner
            if isinstance(inner, Quantity):  # two currency marks, "$5 dollars"
                joined = unit if inner.unit in ("$", unit) else f"{inner.unit} {unit}"
                return Quantity(inner.value, joined)
            return Quantity(inner, unit)
        case PlusMinus(operand, sign):
            inner = hoisted(operand)
            if isinstance(inner, Quantity):
                return Quantity(PlusMinus(inner.value, sign), inner.unit)
            return node
        case _:
            return node


def _hoisted_product(node: Node, factors: tuple[Node, ...]) -> Node:
    last = factors[-1]
    if isinstance(last, Mul) and isinstance(last.factors[-1], Constant):
        factors = (*factors[:-1], *last.factors)
        last = factors[-1]
    if isinstance(last, Quantity):
        return Quantity(Mul((*factors[:-1], last.value)), last.unit)
    if isinstance(last, Constant) and last.name in ("degree", "percent"):
        rest = factors[:-1]
        return Quantity(rest[0] if len(rest) == 1 else Mul(rest), last.name)
    return node


def _kind(node: Node | None, form: str) -> str:
    if len(form) < 40:
        letter = _LETTER.fullmatch(bare(form))
        if letter and letter[1] in "ABCDEFGHIJ":
            return "choice"
    worded = isinstance(node, Group) and isinstance(node.items[0], Text)
    if node is None or isinstance(node, Text) or (worded and _says(form)):
        said = spoken(form[:400])
        explained = _YES_NO.match(said) and not _FORMULA.search(form)
        return "boolean" if explained or said in _YES else "text"
    match node:
        case Number() | Based() | Mul((Number(), Number())):
            return "number"
        case Group():
            return _group_kind(node)
        case SetOperation():
            return "union"
        case Matrix():
            return "matrix"
        case Chain(_, operators):
            return "equation" if set(operators) <= {"=", "approx", "equiv"} else "inequality"
        case Call("ratio" | "time"):
            return "ratio"
        case Quantity(Number() | Mul((Number(), Number())), _):
            return "number"
        case _:
            return "expression"


def _says(form: str) -> bool:
    """Whether it is yes or no with a reason in words behind it."""
    return _YES_NO.match(spoken(form[:400])) is not None and not _FORMULA.search(form)


def _group_kind(node: Group) -> str:
    if node.opening == "{":
        return "set"
    if node.opening == "":
        chains = any(isinstance(item, Chain) for item in node.items)
        return "system" if chains else "list"
    if node.opening == "(" and node.closing == ")":
        return "tuple"
    return "interval" if len(node.items) == 2 else "tuple"
