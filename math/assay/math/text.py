r"""Normal forms of an answer's text, before it is read.

`normal` turns Unicode signs into the LaTeX they stand for, drops delimiters and layout, undoes
escapes that a JSON or Markdown writer left behind, and joins digits that LaTeX spaces apart
(`1{,}000`, `1\,000`). `words` is the form in which answers in words are compared.

Every function is linear in the length of its text.
"""

# ruff: noqa: RUF001 - look-alikes are what this module is about
from __future__ import annotations

import html
import re
import unicodedata

_SIGNS = {
    "π": "\\pi ", "θ": "\\theta ", "α": "\\alpha ", "β": "\\beta ", "γ": "\\gamma ",
    "δ": "\\delta ", "ε": "\\epsilon ", "λ": "\\lambda ", "μ": "\\mu ", "ν": "\\nu ",
    "ρ": "\\rho ", "σ": "\\sigma ", "τ": "\\tau ", "φ": "\\phi ", "ϕ": "\\phi ", "χ": "\\chi ",
    "ψ": "\\psi ", "ω": "\\omega ", "η": "\\eta ", "κ": "\\kappa ", "ξ": "\\xi ", "ζ": "\\zeta ",
    "Γ": "\\Gamma ", "Δ": "\\Delta ", "Θ": "\\Theta ", "Λ": "\\Lambda ", "Σ": "\\Sigma ",
    "Φ": "\\Phi ", "Ψ": "\\Psi ", "Ω": "\\Omega ", "Π": "\\Pi ", "µ": "\\mu ", "ℓ": "\\ell ",
    "√": "\\sqrt ", "∛": "\\sqrt[3] ", "∜": "\\sqrt[4] ", "∞": "\\infty ", "∅": "\\emptyset ",
    "×": "\\times ", "·": "\\cdot ", "⋅": "\\cdot ", "∙": "\\cdot ", "∗": "*", "÷": "\\div ",
    "–": "-", "—": "-", "‐": "-", "‑": "-", "±": "\\pm ", "∓": "\\mp ",
    "≤": "\\le ", "⩽": "\\le ", "≦": "\\le ", "≥": "\\ge ", "⩾": "\\ge ", "≧": "\\ge ",
    "≠": "\\neq ", "≈": "\\approx ", "≡": "\\equiv ", "∶": ":", "∈": "\\in ", "∉": "\\notin ",
    "∪": "\\cup ", "∩": "\\cap ", "⊂": "\\subset ", "⊆": "\\subseteq ", "∖": "\\setminus ",
    "ℝ": "\\mathbb{R} ", "ℤ": "\\mathbb{Z} ", "ℕ": "\\mathbb{N} ", "ℚ": "\\mathbb{Q} ",
    "ℂ": "\\mathbb{C} ", "°": "\\degree ", "º": "\\degree ", "˚": "\\degree ", "′": "'", "’": "'",
    "⁄": "/", "∕": "/", "…": "\\ldots ", "⋯": "\\ldots ", "→": "\\to ", "⇒": "\\Rightarrow ",
    "∧": "\\land ", "∨": "\\lor ", "⊥": "\\perp ", "∥": "\\parallel ", "∠": "\\angle ",
    "△": "\\triangle ", "⌊": "\\lfloor ", "⌋": "\\rfloor ", "⌈": "\\lceil ", "⌉": "\\rceil ",
    "½": "\\frac{1}{2}", "⅓": "\\frac{1}{3}", "⅔": "\\frac{2}{3}", "¼": "\\frac{1}{4}",
    "¾": "\\frac{3}{4}", "⅕": "\\frac{1}{5}", "⅖": "\\frac{2}{5}", "⅗": "\\frac{3}{5}",
    "⅘": "\\frac{4}{5}", "⅙": "\\frac{1}{6}", "⅚": "\\frac{5}{6}", "⅛": "\\frac{1}{8}",
    "⅜": "\\frac{3}{8}", "⅝": "\\frac{5}{8}", "⅞": "\\frac{7}{8}",
    "，": ",", "、": ",", "；": ";", "：": ":", "。": ".",
    "【": "[", "】": "]", "〔": "(", "〕": ")",
    "或者": "\\text{or}", "“": '"', "”": '"', "‘": "'", "£": "\\text{gbp}",
    "€": "\\text{euros}", "¥": "\\text{yuan}", "￥": "\\text{yuan}", "₹": "\\text{rupees}",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u3000": " ", "\u200b": "", "\ufeff": "",
    "\u2061": "", "\u2062": "", "\u200e": "", "⟨": "\\langle ", "⟩": "\\rangle ",
    "¬": "\\neg ", "！": "!", "％": "%", "＄": "\\$", "∀": "\\forall ",
    "∃": "\\exists ", "⅐": "\\frac{1}{7}", "⅑": "\\frac{1}{9}", "⅒": "\\frac{1}{10}",
    "\u2212": "-", "\ufe63": "-", "\u2012": "-", "\u2015": "-", "\ufe62": "+", "\ufe64": "<",
    "\ufe65": ">", "\ufe66": "=", "\ufe6a": "%", "\u212b": "\u00c5", "\ufe0f": "", "\ufe0e": "",
    "\u2002": " ", "\u2003": " ", "\u2004": " ", "\u2005": " ", "\u2006": " ", "\u2007": " ",
    "\u2008": " ", "\u200a": " ", "\u205f": " ", "\u200c": "", "\u200d": "", "\u2060": "",
    "\u2063": "", "\u066a": "%", "\u066b": ".", "\u066c": "{,}", "\u060c": ",", "\u061b": ";",
    "\u2033": "\"", "\u2223": "|", "⊙": "\\odot ", "⊕": "\\oplus ", "⇔": "\\iff ",
}  # fmt: skip
_TABLE = {ord(sign): latex for sign, latex in _SIGNS.items() if len(sign) == 1}
_TABLE |= {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if code not in _TABLE}
_ZEROS = "٠۰०০੦૦୦௦౦೦൦๐໐༠၀០"  # of Arabic, Persian, Devanagari and other digits
_TABLE |= {ord(zero) + value: str(value) for zero in _ZEROS for value in range(10)}
_UPPER, _LOWER = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣᵃᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷʸᶻ", "₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"
_SUPERSCRIPTS = str.maketrans(_UPPER, "0123456789+-()nixabcdefghjklmoprstuvwyz")
_SUBSCRIPTS = str.maketrans(_LOWER, "0123456789+-()aehijklmnoprstuvx")
_RAISED = re.compile(f"[{_UPPER}]+")
_LOWERED = re.compile(f"[{_LOWER}]+")
_STARRED_SET = re.compile(r"([ℝℤℕℚℂ])\*")
_OVERLINED = re.compile("(?:\\d\u0305)+")
_STYLED = re.compile("[\U0001d400-\U0001d7ff\u210e]")  # letters and digits in bold, italic, script
_CHINESE_IS = re.compile("的值(?:为|是|等于)|(?<!不)等于")
_CHINESE_ROOT = re.compile(
    r"(?:\\text\s?\{\s?)?根号下?(?:\s?\})?\s?(\d{1,20}|\([^()]{1,40}\)|[a-z](?![a-z]))"
)
_CHINESE_PART = re.compile(r"(?:(?<=\d)又)?(\d{1,9})分之(\d{1,9})(?!\d)")
_CHINESE_MINUS = re.compile(r"负(?=[\d\\(a-z])")
_TICKED = re.compile(r"(?<=\S)\s*[✓✔✅☑]+\s*$")
_CHINESE_OR = re.compile("或者?")
_CHINESE_AND = re.compile("[和且与]|以及")

_CONTROL = re.compile("[\t\x0c\r\x08\n]")
_ESCAPE_ACCIDENTS = (
    (re.compile(r"\t(?=frac|ext|imes|heta|an\b|o\b)"), r"\\t"),
    (re.compile(r"\f(?=rac|loor|orall\b)"), r"\\f"),
    (re.compile(r"\r(?=ight|angle|m\b|ho\b)"), r"\\r"),
    (re.compile("\x08(?=inom|egin|eta\\b|ig|oxed|ar\\b|mod|ullet\\b)"), r"\\b"),
    (re.compile(r"\n(?=eq\b|olimits|otin\b|mid\b)"), r"\\n"),
)
_NESTED_TAGS = 3
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z%$()\[\]{}!,;])")
_ROW_SPACING = re.compile(r"(\\\\)\s{0,3}\[-?[\d.]{1,5}\s?(?:pt|em|ex|mm|cm)\]")
_JOINED = re.compile(
    r"(?<=\d)(?:\{,\}|\{,\\!\}|\{\\,\}|,\\!|\\!,(?:\\!)?|\\,|\\!|,\\,|\\ |~"
    r"|\{?\\(?:text|mathord|mathrm)\s?\{,\}\}?)\s?(?=\d{3}(?!\d))"
)
_LAYOUT = re.compile(
    r"\\(?:left|right|middle|[bB]ig{1,2}[lrm]?|displaystyle|textstyle|limits|nolimits|nonumber"
    r"|mathstrut|bf|rm|it|tt|sf|tiny|small|normalsize|large|Large|LARGE|huge|Huge|ensuremath"
    r"|bfseries|color\s?\{[a-zA-Z]{1,20}\}|(?:text|math)color\s?\{[a-zA-Z]{1,20}\}"
    r"|cal|mathstrut|strut|[hv]?phantom\s?\{[^{}]{0,20}\})(?![A-Za-z])\s{0,4}\.?(?<!\.)"
)
_NULL_DELIMITER = re.compile(r"\\(?:left|right)\s{0,4}\.")
_NUMBERED = re.compile(r"\\(?:tag\*?|label)\s?\{[^{}]{0,40}\}|\\(?:blacksquare|qed)\s*$")
_WRAPPING = re.compile(
    r"\\(?:begin|end)\s?\{(?:equation|math|displaymath|center|document|flushleft|minipage)\*?\}"
)
_BOX_OPTIONS = re.compile(
    r"\\(?:colorbox\s?\{[^{}]{1,20}\}|fcolorbox\s?\{[^{}]{1,20}\}\{[^{}]{1,20}\}"
    r"|bbox\s?(?:\[[^\[\]]{0,60}\])?|framebox|(?:math)?(?:open|close|punct|inner)(?![a-z]))"
)
_BOLD = re.compile(r"\\bold(?![A-Za-z])")
_LOST_FIRST = ("e", "i", "h", "a")
_COLON = re.compile(r"(?<=\d)\s?(?:\\text\s?)?\{\s?:\s?\}\s?(?=\d)")
_RARE = re.compile(
    r"\\(?:u[0-9a-fA-F]{4}|begin|tag|label|blacksquare|qed|f?colorbox|bbox|framebox|math[a-z]"
    r"|open|close|punct|inner)|\{\s?:"
)
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})(?![0-9a-fA-F])")
_LOST_BACKSLASH = re.compile(
    r"ext(?:bf|rm|it)?\{[ A-Za-z]|imes(?![a-z])|heta(?![a-z])|an(?=[\\\t][a-z]| [a-z]\s?=)"
)
_SPACING = re.compile(r"\\(?:q?quad|hspace\{[^{}]{0,12}\}|hfill|thinspace)|(?<!\\)\\[,;:! ]|~")
_MATH_MARKS = re.compile(r"\\[()]|(?<!\\)\\[\[\]]")
_REPEATING = re.compile(r"(\d{0,40}\.\d{0,40})\\(?:overline|bar)\s?(?:\{(\d{1,40})\}|(\d))")
_DOTTED = re.compile(r"(\d{0,40}\.\d{0,40})\\dot\s?\{?(\d)\}?(?:(\d{0,40})\\dot\s?\{?(\d)\}?)?")
_EMPHASIS = re.compile(r"\*\*(?=[^*\s])([^*\n]{1,400})\*\*(?!\d|\()|__([^_\n]{1,400})__")
_ESCAPED_MARK = re.compile(r"\\([*_~`#&>])")
_ENDLESS = re.compile(r"(\d\.\d{1,60})\s?(?:\.\.\.|\\[lc]?dots\b)(?!\s?,)")
_BRACED_WORD = re.compile(r"(?<![a-z_]\d)(?<=\d)\s?\{(/?[A-Za-z]{2,30}|/[A-Za-z]|[mgLlWNJVK])\}")
_STOPS = (".", ",", ";")
_STARRED = re.compile(r"\*([^*\s][^*]{0,200})\*")
_ITALIC = re.compile(r"(?<![\w\\}])_([A-Za-z])_(?![\w{])")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[A-Za-z]{2,8}\d{0,2});")
_SCRIPT_TAG = re.compile(r"<(sup|sub)>([^<>]{1,60})</\1>", re.IGNORECASE)
_TAGS = "b|strong|i|em|u|p|span|div|code|mark|font|math|center|big|small|tt|var"
_BLOCKS = ("p", "div", "center")
_TAG = re.compile(rf"<({_TAGS})(?:\s[^<>]{{0,80}})?>([^<>]{{0,400}})</\1>", re.IGNORECASE)
_BREAK = re.compile(r"<br\s?/?>", re.IGNORECASE)
_UPRIGHT_LITERAL = re.compile(
    r"0\\(?:text|mathrm|texttt|mathtt)\s?\{([xXbBoO])\}([0-9A-Fa-f]{1,60})(?![0-9A-Za-z])"
    r"|\\(?:text|texttt|mathtt|mathrm)\s?\{\s?(0[xXbBoO][0-9A-Fa-f]{1,60})\s?\}"
)
# Upright by \mathrm it is Euler's number, but for a power in braces.
_UPRIGHT_EXPONENT = re.compile(
    r"(?<=\d)(?:\\text\s?\{[eE]\}\{?([-+]?\d{1,3})\}?|\\mathrm\s?\{[eE]\}\{([-+]?\d{1,3})\})(?![\d.])"
)
_BRACED_COMMA = re.compile(r"(?<![\d,.}])(\d{1,30})\{,\}(\d{1,2}|\d{4,30})(?![\d{,])")
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_ON_A_DAY = re.compile(
    rf"(?:it (?:is|was|will be)|it's|on|it (?:is|was|will be) on) (?:an? )?({_DAYS})", re.IGNORECASE
)
_BY_THE_CLOCK = re.compile(
    r"((?:1[3-9]|2[0-3]):\d{2}(?::\d{2})?)\s?(?:\\text\s?\{\s?)?(?:hours|hrs|Uhr)\s?\}?"
)
_LATEX = re.compile(r"[\\\t\x0c\r\x08]|\{,\}")
_SENTENCE_END = " \t\r\n.,;"
_LAST_STOP = re.compile(r"\\(?:text|mathrm|mbox|textrm)\s?\{\s?[.,;]\s?\}$|(?<=\d)\.(?=\s?\}$)")

_MACRO = re.compile(
    r"\\(?:text|textbf|textit|textrm|texttt|textsf|textnormal|mathrm|mathbf|mathit|mbox|hbox"
    r"|operatorname|mathsf|boxed|emph)\*?\s{0,2}(?=\{)"
)
_NOT_WORDS = re.compile(r"[\s\\{}$\"'`*~_,;:.!?()\[\]|-]+")
_ARTICLES = re.compile(r"\b(?:[Tt]he|[Aa]n|a)\b|^\W*A(?=\s+[a-z])")  # not the A of team A


def normal(text: str) -> str:
    """The text with signs as LaTeX, without delimiters, layout and accidents of escaping."""
    if text.startswith('["') and text.rstrip().endswith('"]'):  # a JSON list of answers
        text = text.rstrip()[2:-2].replace('", "', ", ").replace('","', ", ")
    if text[:1] in _LOST_FIRST and _LOST_BACKSLASH.match(text):  # of a tab that was stripped
        text = f"\\t{text}"
    if "&" in text or "<" in text:
        text = _web(text)
    if not text.isascii():
        text = _ascii(text)
    if _LATEX.search(text):
        text = _latex(text)
    if "$" in text:
        text = _without_dollars(text)
    if "*" in text or "_" in text:
        text = _unmarked(text)
    if "..." in text:
        text = _ENDLESS.sub(_continued, text)
    if "{" in text:
        text = _BRACED_WORD.sub(r" \\text{\1}", text)
    text = text.replace("`", "").strip().rstrip(_SENTENCE_END)
    if text.endswith("}") and text.rstrip("} ")[-1:] in _STOPS:
        text = _LAST_STOP.sub("", text)
    return _moment(" ".join(text.split()))


def _moment(form: str) -> str:
    """A weekday without the words around it, and a time of day without "hours"."""
    if len(form) > 60:
        return form
    if ":" in form and (time := _BY_THE_CLOCK.fullmatch(form)):
        return time[1]
    if form.lower().rstrip("} ").endswith("day"):
        said = form.removeprefix("\\text{").rstrip("}") if form.startswith("\\text{") else form
        day = _ON_A_DAY.fullmatch(said.strip())
        return day[1] if day else form
    return form


def bare(form: str) -> str:
    r"""The text without `\text{...}` and its kin around its words, where it is but words.

    Braces of other macros stay: without them a fraction and its inverse would look the same.
    """
    plain = _MACRO.sub(" ", form).replace("\\ ", " ")
    if "\\" in plain or "^" in plain or "_" in plain:
        return form
    return " ".join(plain.replace("{", " ").replace("}", " ").split())


def words(form: str) -> str:
    """The letters and digits of an answer in words: no macros, articles, spaces or punctuation."""
    plain = _MACRO.sub(" ", form).replace("\\ ", " ")
    return _NOT_WORDS.sub("", _ARTICLES.sub(" ", plain).casefold())


def spoken(form: str) -> str:
    """The words of a text with single spaces, lower case, without macros and outer marks."""
    plain = _MACRO.sub(" ", form).replace("{", " ").replace("}", " ").replace("\\", " ")
    return " ".join(plain.casefold().split()).strip(" .,:;!?'\"()[]")


def _unmarked(text: str) -> str:
    """The text without Markdown's emphasis."""
    if "**" in text or "__" in text:
        text = _EMPHASIS.sub(lambda match: match[1] or match[2], text)
    if text.count("_") > 1:
        text = _ITALIC.sub(r"\1", text)
    starred = _STARRED.fullmatch(text.rstrip(_SENTENCE_END)) if text.startswith("*") else None
    return text if starred is None else starred[1]


def _web(text: str) -> str:
    """The text without the entities and tags of a web page; what a tag strikes out stays marked."""
    if ";" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if "</" in text:
        text = _SCRIPT_TAG.sub(_scripted, text)
        for _ in range(_NESTED_TAGS):
            text = _TAG.sub(_untagged, text)
    return _BREAK.sub(" ", text) if "<" in text else text


def _untagged(match: re.Match[str]) -> str:
    """What a tag holds; that of a paragraph stands apart from what is beside it."""
    return f" {match[2]} " if match[1].lower() in _BLOCKS else match[2]


def _scripted(match: re.Match[str]) -> str:
    return f"{'^' if match[1].lower() == 'sup' else '_'}{{{match[2]}}}"


def _ascii(text: str) -> str:
    if _STYLED.search(text):
        text = _STYLED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    text = _STARRED_SET.sub(r"\1^{*}", text)
    text = _OVERLINED.sub(lambda match: f"\\overline{{{match[0][::2]}}}", text)
    text = _RAISED.sub(lambda match: f"^{{{match[0].translate(_SUPERSCRIPTS)}}}", text)
    text = _LOWERED.sub(lambda match: f"_{{{match[0].translate(_SUBSCRIPTS)}}}", text)
    text = _CHINESE_AND.sub(r"\\text{ and }", _CHINESE_OR.sub(r"\\text{ or }", text))
    text = _TICKED.sub("", text.translate(_TABLE))
    if not text.isascii():
        text = _CHINESE_ROOT.sub(r"\\sqrt{\1}", text)
        text = _CHINESE_PART.sub(r"\\frac{\2}{\1}", text)
        text = _CHINESE_IS.sub(" = ", _CHINESE_MINUS.sub("-", text))
    return text


def _latex(text: str) -> str:
    if _CONTROL.search(text):
        for accident, macro in _ESCAPE_ACCIDENTS:
            text = accident.sub(macro, text)
    if "\\\\" in text:
        text = _ROW_SPACING.sub(r"\1", text).replace("\\\\\\ ", "\\\\ ")
        if "\\begin" not in text:
            text = _DOUBLED.sub(r"\\", text)
    if _RARE.search(text):
        text = _undressed(text)
    if "\\text" in text or "\\math" in text:
        text = _UPRIGHT_LITERAL.sub(lambda found: found[3] or f"0{found[1]}{found[2]}", text)
        text = _UPRIGHT_EXPONENT.sub(lambda found: rf"\times 10^{{{found[1] or found[2]}}}", text)
    text = _BRACED_COMMA.sub(r"\1,\2", text)
    text = _JOINED.sub("", text)
    if "\\left" in text or "\\right" in text:
        text = _NULL_DELIMITER.sub("", text)
    text = _LAYOUT.sub(" ", text)
    if "\\overline" in text or "\\bar" in text:
        text = _REPEATING.sub(lambda match: f"{match[1]}\x01{match[2] or match[3]}", text)
    if "\\dot" in text:
        text = _DOTTED.sub(_dotted, text)
        text = _ENDLESS.sub(_continued, text)
    if "\\bold" in text:
        text = _BOLD.sub(r"\\mathbf", text)
    text = _MATH_MARKS.sub(" ", text)
    text = _SPACING.sub(" ", text)
    return _ESCAPED_MARK.sub(r"\1", text)


def _undressed(text: str) -> str:
    """The text without what only dresses or numbers a formula."""
    text = _ascii(_ESCAPED.sub(lambda match: chr(int(match[1], 16)), text))
    text = _WRAPPING.sub(" ", _COLON.sub(":", text))
    return _BOX_OPTIONS.sub("", _NUMBERED.sub("", text))


def _dotted(match: re.Match[str]) -> str:
    return f"{match[1]}\x01{match[2]}{match[3] or ''}{match[4] or ''}"


def _continued(match: re.Match[str]) -> str:
    """Digits before an ellipsis: the last repeats where it stands three times, else they stand."""
    digits = match[1]
    repeated = digits.rstrip(digits[-1])
    if len(digits) - len(repeated) < 3 or "." not in repeated:
        return digits
    return f"{repeated}\x01{digits[-1]}"


def _without_dollars(text: str) -> str:
    r"""Math delimiters go, currency becomes `\text{dollars}` behind the amount."""
    text = text.replace("\\$", "\x02")
    if text.count("$") % 2:  # not delimiters, or one of them is currency
        first = text.find("$")
        before, after = text[:first], text[first + 1 :]
        if after.lstrip()[:1].isdigit() or after.lstrip()[:1] in ("-", "."):
            text = f"{before}\x02{after}"
        elif before.rstrip()[-1:].isdigit():
            text = f"{before}\x02 {after}"
    text = text.replace("$", " ")
    return text.replace("\x02", "\\dollar ")
