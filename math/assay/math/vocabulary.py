"""The words and macros that the reader knows, as tables."""

from __future__ import annotations

Entry = tuple[str, str]


def _listed(text: str) -> list[str]:
    return text.split()


_GREEK = _listed(
    """
    alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma
    tau upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi
    Omega
    """
)
FUNCTIONS = _listed(
    """
    sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot
    arcsec arccsc arsinh arcosh artanh arcoth arsech arcsch ln log exp gcd lcm max min
    sqrt cbrt abs floor ceil cis
    """
)
_SYNONYMS = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "arcsinh": "arsinh",
    "arccosh": "arcosh", "arctanh": "artanh", "asinh": "arsinh", "acosh": "arcosh",
    "atanh": "artanh", "tg": "tan", "ctg": "cot", "cotg": "cot", "cosec": "csc",
    "arctg": "arctan", "arcctg": "arccot", "sh": "sinh", "ch": "cosh", "th": "tanh",
    "lg": "log10", "Log": "log", "Re": "re", "Im": "im", "arg": "arg", "Arg": "arg",
    "acot": "arccot", "asec": "arcsec", "acsc": "arccsc", "binom": "binomial",
    "ceiling": "ceil", "sgn": "sgn", "det": "det", "dim": "dim", "deg": "deg",
}  # fmt: skip
_VARIANTS = {
    "varepsilon": "epsilon", "vartheta": "theta", "varphi": "phi", "varrho": "rho",
    "varsigma": "sigma", "ell": "ell", "hbar": "hbar", "partial": "partial", "nabla": "nabla",
    "emptyset": "emptyset", "varnothing": "emptyset", "aleph": "aleph", "imath": "i",
    "jmath": "j", "angle": "angle", "triangle": "triangle", "square": "square", "Box": "square",
}  # fmt: skip

ALPHABET = "abcdefghijklmnopqrstuvwxyz"

# Whole runs of letters.
KNOWN: dict[str, Entry] = {
    **{name: ("name", name) for name in _GREEK},
    **{name: ("function", name) for name in FUNCTIONS},
    **{name: ("function", meant) for name, meant in _SYNONYMS.items() if len(name) > 2},
    "lg": ("function", "log10"), "tg": ("function", "tan"),
    "pi": ("constant", "pi"), "Pi": ("constant", "pi"), "e": ("constant", "e"),
    "i": ("constant", "i"), "inf": ("constant", "infinity"), "oo": ("constant", "infinity"),
    "infty": ("constant", "infinity"), "infinity": ("constant", "infinity"),
    "Infinity": ("constant", "infinity"), "sqrt": ("macro", "sqrt"), "cbrt": ("macro", "cbrt"),
    "frac": ("macro", "frac"), "dfrac": ("macro", "frac"), "cdot": ("sign", "*"),
    "times": ("text", "times"), "and": ("sign", "and"), "or": ("sign", "or"),
    "in": ("text", "in"), "mod": ("sign", "mod"), "degrees": ("constant", "degree"),
    "degree": ("constant", "degree"), "percent": ("constant", "percent"),
    "pct": ("constant", "percent"), "percentage": ("constant", "percent"),
    "union": ("sign", "union"), "U": ("name", "U"), "AND": ("sign", "and"), "OR": ("sign", "or"),
    "Yes": ("text", "yes"), "No": ("text", "no"), "Abs": ("function", "abs"),
    "Ln": ("function", "ln"), "Sqrt": ("macro", "sqrt"),
}  # fmt: skip

# Found inside a run of letters, as in `2xcosx`.
EMBEDDED: dict[str, Entry] = {
    name: KNOWN[name]
    for name in _listed(
        """
    sqrt sin cos tan cot sec csc ln log exp pi sinh cosh tanh arcsin arccos arctan theta
    alpha beta gamma lambda
    """
    )
}

# Short words that are not products of letters.
ENGLISH = frozenset(
    _listed(
        """
    a an the of is are was be been for to at by as on it its if no not yes so all any
    one two three four five six seven eight nine ten odd even both each per day days
    hour hours min mins sec secs m2 cm km mm kg ft mi lb lbs oz yd yds mph kph mol rad
    hr hrs am pm feet foot inch inches miles mile set real none true false then than
    this that with from when where either neither nor but only maybe sum row red blue
    cat dog man men boy boys girl dne usd rmb min gal qt pt integer integers number
    numbers prime primes positive negative nonnegative function circle line cannot does
    second seconds distance distances constant cost costs since using single spin opinion
    exist undefined unknown answer value total about approximately roughly such exactly
    """
    )
) - {"a", "min", "sec"}

_RELATIONS = {
    "le": "<=", "leq": "<=", "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=",
    "geqslant": ">=", "geqq": ">=", "lt": "<", "gt": ">", "ne": "!=", "neq": "!=",
    "approx": "approx", "simeq": "approx", "sim": "similar", "equiv": "equiv", "in": "in",
    "notin": "notin", "subset": "subset", "subseteq": "subset", "to": "to", "rightarrow": "to",
    "Rightarrow": "to", "longrightarrow": "to", "mapsto": "to", "iff": "to", "implies": "to",
    "Leftrightarrow": "to", "perp": "perp", "parallel": "parallel", "mid": "|", "vert": "|",
    "colon": ":", "land": "land", "lor": "lor", "wedge": "land", "vee": "lor", "ni": "ni",
    "propto": "propto", "cong": "cong",
}  # fmt: skip
_SIGNS = {
    "times": "*", "cdot": "*", "ast": "*", "div": "/", "pm": "pm", "mp": "mp", "cup": "union",
    "cap": "intersection", "setminus": "difference", "backslash": "difference", "{": "set{",
    "}": "}set", "lbrace": "set{", "rbrace": "}set", "lvert": "|", "rvert": "|", "|": "|",
    "lbrack": "[", "rbrack": "]", "langle": "(", "rangle": ")", "lparen": "(", "rparen": ")",
    "lfloor": "floor(", "rfloor": ")floor", "lceil": "ceil(", "rceil": ")ceil", "%": "%",
    "\\": "newline", "newline": "newline", "bmod": "mod", "mod": "mod", "prime": "'",
    "bigcup": "union", "bigcap": "intersection", "circ": "circ", "degree": "circ", "&": "&",
    "_": "_", "#": "#", "cr": "newline", "slash": "/", "over": "over",
}  # fmt: skip

# What follows a backslash. An entry with an empty kind is layout.
MACROS: dict[str, Entry] = {
    **{name: ("name", name) for name in _GREEK if name != "Pi"},
    **{name: ("name", meant) for name, meant in _VARIANTS.items()},
    **{name: ("function", name) for name in FUNCTIONS},
    **{name: ("function", meant) for name, meant in _SYNONYMS.items()},
    **{name: ("sign", meant) for name, meant in (_RELATIONS | _SIGNS).items()},
    "Pi": ("name", "Pi"), "pi": ("constant", "pi"), "infty": ("constant", "infinity"),
    "infin": ("constant", "infinity"), "frac": ("macro", "frac"), "dfrac": ("macro", "frac"),
    "tfrac": ("macro", "frac"), "cfrac": ("macro", "frac"), "sfrac": ("macro", "frac"),
    "fract": ("macro", "frac"), "sqrt": ("macro", "sqrt"), "cbrt": ("macro", "cbrt"),
    "binom": ("macro", "binom"), "dbinom": ("macro", "binom"), "tbinom": ("macro", "binom"),
    "choose": ("sign", "choose"), "pmod": ("macro", "pmod"), "overline": ("macro", "overline"),
    "bar": ("macro", "overline"), "vec": ("macro", "decorated"), "hat": ("macro", "decorated"),
    "tilde": ("macro", "decorated"), "widehat": ("macro", "decorated"),
    "overrightarrow": ("macro", "decorated"), "underline": ("macro", "decorated"),
    "dot": ("macro", "decorated"), "ddot": ("macro", "decorated"),
    "sum": ("macro", "sum"), "prod": ("macro", "product"), "int": ("macro", "integral"),
    "lim": ("macro", "limit"), "ldots": ("name", "..."), "cdots": ("name", "..."),
    "dots": ("name", "..."), "dotsc": ("name", "..."), "vdots": ("name", "..."),
    "dotsb": ("name", "..."), "dotsm": ("name", "..."), "ddots": ("name", "..."),
    "therefore": ("", ""), "because": ("", ""), "hline": ("", ""), "dollar": ("text", "$"),
    "neg": ("text", "not"), "not": ("sign", "not"), "forall": ("text", "for all"),
    "exists": ("text", "exists"), "checkmark": ("", ""), "Re": ("function", "re"),
    "Im": ("function", "im"), "hspace": ("", ""), "noindent": ("", ""), "centerdot": ("sign", "*"),
    "label": ("", ""), "R": ("name", "mathbbR"), "Z": ("name", "mathbbZ"),
    "N": ("name", "mathbbN"), "Q": ("name", "mathbbQ"), "star": ("name", "star"),
    "odot": ("name", "odot"), "oplus": ("sign", "oplus"), "deg": ("sign", "circ"),
    "bullet": ("sign", "*"), "gets": ("sign", "to"),
    "nicefrac": ("macro", "frac"), "textcirc": ("sign", "circ"), "oslash": ("name", "emptyset"),
    "flatfrac": ("macro", "frac"), "textdegree": ("sign", "circ"), "doteq": ("sign", "approx"),
    "top": ("name", "T"), "intercal": ("name", "T"), "textdollar": ("text", "$"),
}  # fmt: skip

WRAPPERS = frozenset(
    _listed(
        """
    text textbf textit textrm texttt textsf textnormal textup textsc mathrm mathbf
    mathit mathsf mathtt mbox hbox operatorname boxed fbox emph boldsymbol bm pmb mathbb
    mathcal mathscr mathfrak displaylines mathop mathord mathbin smash overset underset
    """
    )
) - {"overset", "underset"}

NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        _listed(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen
    fourteen fifteen sixteen seventeen eighteen nineteen twenty
    """
)
    )
} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
    "ninety": 90, "hundred": 100, "one hundred": 100, "thousand": 1000, "one thousand": 1000,
    "half": -1,
}  # fmt: skip
NUMBER_WORDS.pop("half")
