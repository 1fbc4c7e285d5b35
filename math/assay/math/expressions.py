r"""Recursive descent over sums, products, powers, functions and atoms.

Products and quotients bind equally tightly from the left, with or without a sign: `1/3p` is a third
of p. An integer before a proper fraction is a mixed number, and a percent or degree sign behind it
belongs to all of it. A function without brackets takes the power behind it and the letters that
follow. Work is bounded by the number of nodes and the depth.
"""

# ruff: noqa: PLR0911 - one case, one return
from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from assay.math import nodes
from assay.math.building import (
    based,
    called,
    check_repeats,
    is_proper_fraction,
    literal,
    negated,
    quotient,
    raised,
)
from assay.math.lexer import Token, Unreadable
from assay.math.nodes import (
    MINUS_ONE,
    ONE,
    TWO,
    Add,
    Call,
    Constant,
    Mul,
    Node,
    Number,
    PlusMinus,
    Pow,
    Quantity,
    Symbol,
    Text,
)
from assay.math.scripts import Scripts

_PERCENT = Constant("percent")
_INVERSES = {
    "sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec",
    "csc": "arccsc", "sinh": "arsinh", "cosh": "arcosh", "tanh": "artanh",
}  # fmt: skip
_UNDEFINED_FUNCTIONS = frozenset("fghFGH")
_WITH_ARGUMENTS = frozenset({"sin", "cos", "tan", "log", "arcsin", "arccos", "arctan"})
_FAMILIES = frozenset({"union", "intersection"})
_INDEX = Symbol("index")
_EXTREMES = {"max": "greatest", "min": "least"}


def _index(node: Node) -> Node:
    return Symbol("i") if node == Constant("i") else node


def _renaming(variable: Symbol) -> Callable[[Node], Node]:
    """Puts one name for the index of a family of sets, which may have any."""
    return lambda node: _INDEX if node == variable else node


def _is_event(name: Node, condition: nodes.Chain) -> bool:
    """Whether a relation in brackets is the argument of what stands before it, as in P(X > 1)."""
    upper = isinstance(name, Symbol) and name.name[:1].isupper()
    return upper or condition.operators == ("=",)


class ExpressionParser(Scripts):
    """A cursor over tokens; the methods read one construct each and leave the cursor behind it."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__(tokens)
        self.bars = 0

    def sequence(self, *closers: str) -> list[list[Node]]:
        """Items between separators, in rows; the subclass reads them."""
        raise Unreadable("a list where none is expected")

    def environment(self, name: str) -> Node:
        """A LaTeX environment; the subclass reads it."""
        raise Unreadable(f"an environment {name}")

    def group(self, opening: str) -> Node:
        """What stands between brackets; the subclass reads it."""
        raise Unreadable(f"a bracket {opening}")

    # Sums and products.

    def sum(self) -> Node:
        """Terms with plus, minus and plus-minus between them."""
        terms = [self._term(self.takes("+", "-", "pm", "mp"))]
        while True:
            sign = self.takes("+", "-", "pm", "mp")
            if not sign:
                break
            terms.append(self._term(sign))
        return terms[0] if len(terms) == 1 else Add(tuple(terms))

    def _term(self, sign: str) -> Node:
        self.count()
        flips = 0
        while True:  # `+ - -x` is read as signs, not as nesting
            further = self.takes("+", "-")
            if not further:
                break
            flips += further == "-"
        node = self._product()
        if flips % 2:
            node = negated(node)
        if sign == "-":
            return negated(node)
        if sign in ("pm", "mp"):
            return PlusMinus(node, 1 if sign == "pm" else -1)
        return node

    def _product(self) -> Node:
        factors = [self._power()]
        while True:
            if self.takes("*"):
                factors.append(self._signed_power())
            elif self.sees("/") and self.tokens[self.position + 1].kind != "text":
                self.position += 1
                factors.append(Pow(self._signed_power(), MINUS_ONE))
            elif self.sees("mod", "choose", "over"):
                return self._infix(factors)
            elif self._starts_factor() or self._follows_power(factors[-1]):
                self._append_implicit(factors)
            else:
                break
        return factors[0] if len(factors) == 1 else Mul(tuple(factors))

    def _infix(self, factors: list[Node]) -> Node:
        left = factors[0] if len(factors) == 1 else Mul(tuple(factors))
        sign = self.takes("mod", "choose", "over")
        right = self._product()
        if sign == "over":
            return quotient(left, right)
        return Call("mod" if sign == "mod" else "binomial", (left, right))

    def _append_implicit(self, factors: list[Node]) -> None:
        whole = factors[-1]
        if self._opens_mixed(whole):
            fraction = self._atom()
            if is_proper_fraction(fraction) and not self.is_raised():
                factors[-1] = self._followed(Add((whole, fraction)))
            else:
                factors.append(self._followed(fraction))
            return
        node = self._power()
        if isinstance(node, nodes.Chain) and not _is_event(whole, node):
            raise Unreadable("a condition in a product")
        if isinstance(node, Text):
            check_repeats(whole, node)
        else:
            factors.append(node)

    def _opens_mixed(self, whole: Node) -> bool:
        """Whether a fraction comes now, right behind a whole number."""
        return (
            self.tokens[self.position] == ("macro", "frac")
            and self.tokens[self.position - 1].kind == "number"
            and isinstance(whole, Number)
            and not whole.digits
        )

    def _opens_angle(self, whole: Node) -> bool:
        """Whether a fraction with a degree sign comes now, right behind a whole number."""
        if not self._opens_mixed(whole):
            return False
        at = self.position + 1
        while self.tokens[at].kind == "number" or self.tokens[at].value in ("{", "}"):
            at += 1
        return self.degree_size(at + (self.tokens[at] == ("sign", "^"))) > 0

    def _starts_factor(self) -> bool:
        kind, value = self.tokens[self.position]
        if kind == "sign":
            if value == "|":
                return self.bars == 0
            opens = value in ("(", "[", "{", "set{", "floor(", "ceil(")
            return opens and not self.opens_modulus()
        if kind == "macro":
            return not value.startswith("end") and value != "pmod"
        if kind == "number":  # `N2^n` is a product, `x2` is nothing
            before, behind = self.tokens[self.position - 1], self.tokens[self.position + 1]
            closed = before.kind == "sign" and before.value in (")", "}")
            return (closed and behind == ("sign", "!")) or (
                (closed or before.kind == "name") and behind == ("sign", "^")
            )
        return kind in ("name", "constant", "function")

    def _follows_power(self, last: Node) -> bool:
        r"""Whether a whole number comes now that multiplies a power of one: `2^6 3^5`, `2^4 5`.

        Also behind a function with its argument in brackets, as in `\cos(x) 20`.
        """
        kind, value = self.tokens[self.position]
        if kind != "number" or not value.isdigit():
            return False
        if self.tokens[self.position + 1] == ("sign", "/"):
            return False
        if isinstance(last, Call):
            return self.tokens[self.position - 1] == ("sign", ")") and last.name in _WITH_ARGUMENTS
        if not isinstance(last, Pow) or last.exponent is MINUS_ONE:
            return False
        if not isinstance(last.base, Number):
            return self.tokens[self.position + 1] == ("sign", "^")
        return not last.base.digits

    def opens_modulus(self) -> bool:
        """Whether `(mod` comes now."""
        mod = self.tokens[self.position + 1] == ("sign", "mod")
        return mod and self.sees("(")

    def _signed_power(self) -> Node:
        flips = 0
        while True:
            sign = self.takes("-", "+")
            if not sign:
                break
            flips += sign == "-"
        node = self._power()
        return negated(node) if flips % 2 else node

    # Powers and what follows an atom.

    def _power(self) -> Node:
        return self._followed(self._atom())

    def _followed(self, atom: Node) -> Node:
        base = self._postfix(atom)
        while self.sees("^"):
            self.position += 1
            if self.takes_degree():
                base = self.angle(base)
            elif self.opens_primes():
                base = self._applied(self.primed(base))
            elif isinstance(base, Symbol) and (mark := self.takes_mark()):
                base = Symbol(f"{base.name}^{mark}")
            else:
                base = self._raised(base)
            base = self._postfix(base)
        return base

    def _raised(self, base: Node) -> Node:
        """A power; a subscript behind the exponent is the base's, as in `v^2_0`."""
        if not isinstance(base, Symbol):
            digits = self.tokens[self.position].kind == "number"
            return raised(base, self._exponent(scripted=not (digits and isinstance(base, Number))))
        exponent = self._exponent(scripted=False)
        if self.sees("_"):
            base = self._subscripted(base)
        return raised(base, exponent)

    def _exponent(self, *, scripted: bool = True) -> Node:
        """What is raised; `scripted` says whether a bare name in it may have a subscript."""
        self.descend()
        flips = 0
        while True:
            sign = self.takes("-", "+")
            if not sign:
                break
            flips += sign == "-"
        braced = self.sees("{")
        node = self._atom()
        if not braced:  # 2^3! is 2^(3!), x^{2}! is (x^2)!
            node = self._postfix(node, scripted=scripted)
        if self.takes("^"):
            node = Pow(node, self._exponent(scripted=scripted))
        self.ascend()
        return negated(node) if flips % 2 else node

    def _postfix(self, node: Node, *, scripted: bool = True) -> Node:
        while True:
            token = self.tokens[self.position]
            if token.kind != "sign":
                return node
            if token.value == "!":
                self.position += 1
                name = "double_factorial" if self.takes("!") else "factorial"
                node = Call(name, (node,))
            elif token.value == "%":
                self.position += 1
                node = Mul((node, _PERCENT))
            elif token.value == "circ":
                self.position += 1
                node = self.angle(node)
            elif token.value == "'" and isinstance(node, Symbol):
                node = self._applied(self.primed(node))
            elif token.value == "_" and scripted:
                node = self._subscripted(node)
            else:
                return node
            self.count()

    def _subscripted(self, node: Node) -> Node:
        self.position += 1
        subscript = self.raw()
        if isinstance(node, Symbol):
            stem = node.name.rstrip("'")
            return self._name(f"{stem}_{subscript}{node.name[len(stem) :]}")
        if isinstance(node, Constant):
            return Symbol(f"{node.name}_{subscript}")
        if subscript in _EXTREMES:  # the greatest value of f(x), said as f(x)_{max}
            return Call(_EXTREMES[subscript], (node,))
        if isinstance(node, Number) and not node.digits:
            return based(str(node.value), subscript)
        raise Unreadable("a subscript behind something that has none")

    # Atoms.

    def _atom(self) -> Node:
        self.count()
        kind, value = self.tokens[self.position]
        if kind == "number":
            self.position += 1
            return self._number(value)
        if kind == "name":
            self.position += 1
            return self._name(value)
        if kind == "constant":
            self.position += 1
            return Constant(value)
        if (kind, value) == ("text", "$"):
            self.position += 1
            return Quantity(self._number_behind(), "$")
        if kind not in ("function", "macro", "sign"):
            raise Unreadable("words where mathematics is expected" if kind == "text" else "cut off")
        self.descend()
        self.position += 1
        if kind == "function":
            node = self._function(value)
        elif kind == "macro":
            node = self._macro(value)
        else:
            node = self._bracket(value)
        self.ascend()
        return node

    def _number_behind(self) -> Node:
        token = self.tokens[self.position]
        if token.kind != "number":
            raise Unreadable("a currency sign without an amount")
        self.position += 1
        return literal(token.value)

    def _number(self, value: str) -> Node:
        number = literal(value)
        following = self.tokens[self.position : self.position + 3]
        if (
            following[0].kind == "number"
            and following[1] == ("sign", "/")
            and following[2].kind == "number"
            and value.isdigit()
        ):
            above, below = literal(following[0].value), literal(following[2].value)
            if is_proper_fraction(quotient(above, below)):
                self.position += 3
                return Add((number, quotient(above, below)))
        return number

    def _name(self, name: str) -> Node:
        if not self.sees("(") or not (name in _UNDEFINED_FUNCTIONS or self._declares()):
            return Symbol(name)
        self.position += 1
        arguments = self._arguments(")")
        return Call(name, arguments)

    def _applied(self, name: Symbol) -> Node:
        """A derivative of a function with its argument, `f'(2)`, `y'(0)`; else the name."""
        at = self.tokens[self.position + 1 : self.position + 3]
        at_number = len(at) == 2 and at[0].kind == "number" and at[1] == ("sign", ")")
        is_function = name.name.rstrip("'") in _UNDEFINED_FUNCTIONS
        if not (is_function or at_number) or not self.takes("("):
            return name
        return Call(name.name, self._arguments(")"))

    def _declares(self) -> bool:
        """Whether `(names or numbers)` belongs to the name before, as in `P(x) = x`."""
        at = self.position + 1
        while at < self.position + 8:
            token = self.tokens[at]
            if token == ("sign", ")"):
                defined = self.tokens[max(self.position - 2, 0)] == ("sign", "=")
                closes = defined and self.tokens[at + 1].kind == "end"
                return at > self.position + 1 and (closes or self.tokens[at + 1] == ("sign", "="))
            if token.kind not in ("name", "number") and token != ("sign", ","):
                return False
            at += 1
        return False

    def _arguments(self, closer: str) -> tuple[Node, ...]:
        self.descend()
        bars, self.bars = self.bars, 0
        rows = self.sequence(closer)
        self.bars = bars
        self.expect(closer)
        self.ascend()
        return tuple(node for row in rows for node in row)

    def _bracket(self, opening: str) -> Node:
        if opening == "|":
            self.bars += 1
            inner = self.sum()
            self.bars -= 1
            self.expect("|")
            return Call("abs", (inner,))
        if opening in ("union", "intersection") and self.sees("_", "^"):
            return self._big(opening)
        if opening in ("floor(", "ceil("):
            inner = self.sum()
            self.expect(f"){opening[:-1]}")
            return Call(opening[:-1], (inner,))
        if opening in ("(", "[", "{", "set{"):
            bars, self.bars = self.bars, 0
            node = self.group(opening)
            self.bars = bars
            return node
        raise Unreadable(f"{opening!r} where mathematics is expected")

    # Macros.

    def _macro(self, name: str) -> Node:
        if name == "frac":
            above = self.argument()
            return quotient(above, self.argument())
        if name == "sqrt":
            return self._root()
        if name == "cbrt":
            return Call("root", (self.argument(), Number(Fraction(3))))
        if name == "binom":
            above = self.argument()
            return Call("binomial", (above, self.argument()))
        if name in ("overline", "decorated"):
            return Symbol(f"over_{self.raw()}")
        if name in ("sum", "product", "integral", "limit"):
            return self._big(name)
        if name.startswith("begin"):
            return self.environment(name[5:])
        raise Unreadable(f"{name} where mathematics is expected")

    def argument(self) -> Node:
        r"""An argument of a macro: a group, or one token; `\frac12` has the arguments 1 and 2."""
        self.count()
        token = self.tokens[self.position]
        if token.kind == "number" and len(token.value) > 1 and token.value.isdigit():
            self.tokens[self.position] = Token("number", token.value[1:])
            return literal(token.value[0])
        return self._atom()

    def _root(self) -> Node:
        index: Node = TWO
        if self.takes("["):
            index = self.sum()
            self.expect("]")
        if self.sees("-"):
            raise Unreadable("a root of a bare minus")
        radicand = self._atom()
        return Call("root", (radicand, index))

    def _big(self, name: str) -> Node:
        low: Node = Text("")
        high: Node = Text("")
        for _ in range(2):
            if self.takes("_"):
                low = self._bound()
            elif self.takes("^"):
                high = self._exponent(scripted=False)
        self.descend()
        body = self._product()
        self.ascend()
        variable: Node = Text("")
        if isinstance(low, nodes.Chain) and low.operators in (("=",), ("to",), ("in",)):
            variable, low = low.operands
            if name in _FAMILIES and isinstance(variable, Symbol):
                body = nodes.rebuilt(body, _renaming(variable))
                variable = _INDEX
            if variable == Constant("i"):  # an index, not the imaginary unit
                variable = Symbol("i")
                body = nodes.rebuilt(body, _index)
        return Call(name, (body, variable, low, high))

    def _bound(self) -> Node:
        if not self.sees("{"):
            return self._atom()
        self.position += 1
        rows = self.sequence("}")
        self.expect("}")
        return rows[0][0]

    # Functions.

    def _function(self, name: str) -> Node:
        if name == "sqrt":
            return self._root()
        base: Node | None = None
        power: Node | None = None
        for _ in range(2):
            if self.sees("_"):
                self.position += 1
                base = self._log_base()
            elif self.takes("^"):
                power = self._exponent(scripted=False)
        arguments = self._function_arguments()
        node = called(name, arguments, base)
        if power is None:
            return node
        if isinstance(power, Mul) and power.factors == (MINUS_ONE, ONE) and name in _INVERSES:
            return Call(_INVERSES[name], arguments)
        return Pow(node, power)

    def _log_base(self) -> Node:
        token = self.tokens[self.position]
        argument_follows = self.tokens[self.position + 1].kind != "end" and (
            self.tokens[self.position + 1].kind in ("number", "name", "macro", "constant")
            or self.tokens[self.position + 1].value in ("(", "{", "|", "[")
        )
        if token.kind == "number" and len(token.value) > 1 and not argument_follows:
            self.tokens[self.position] = Token("number", token.value[1:])
            return literal(token.value[0])
        return self._atom()

    def _function_arguments(self) -> tuple[Node, ...]:
        opening = self.tokens[self.position]
        if opening in (("sign", "("), ("sign", "["), ("sign", "set{")):
            self.position += 1
            closer = {"(": ")", "[": "]", "set{": "}set"}[opening.value]
            return self._arguments(closer)
        if opening == ("sign", "{"):
            self.position += 1
            return self._arguments("}")
        if self.takes("-"):
            return (negated(self._bare_argument()),)
        return (self._bare_argument(),)

    def _bare_argument(self) -> Node:
        factors = [self._power()]
        if self._opens_angle(factors[0]):
            self._append_implicit(factors)
        while True:
            kind, value = self.tokens[self.position]
            if kind != "name" and (kind, value) != ("constant", "pi"):
                break
            factors.append(self._power())
        return factors[0] if len(factors) == 1 else Mul(tuple(factors))
