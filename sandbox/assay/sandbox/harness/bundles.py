"""What is shown of a value: its forms by mime type, as Jupyter asks an object for them.

Covered: the size of what is shown; methods that raise.
Not covered: how long the object's own methods take, and what they do.
"""

from __future__ import annotations

import builtins
import io
import json
from binascii import a2b_base64
from collections.abc import Callable
from typing import Any, Final

globals()["__builtins__"] = dict(vars(builtins))  # also when the program deletes them

PLAIN: Final = "text/plain"
MAX_TEXT: Final = 256 * 2**10  # characters
MAX_FORM: Final = 1_200_000
MAX_BUNDLE: Final = 1_400_000  # on its way, a byte takes two (`zygote.branch`)
_MAX_FORMS: Final = 32
_MAX_NAME: Final = 100
_MAX_ELEMENTS: Final = 50_000
_METHODS: Final = (
    ("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"), ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"), ("_repr_json_", "application/json"),
)  # fmt: skip
_SIMPLE: Final = frozenset(
    {int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, range}
)
# How much of a large value is represented at all.
_SLICED: Final[dict[type, int]] = {
    str: MAX_TEXT, bytes: MAX_TEXT, bytearray: MAX_TEXT, list: _MAX_ELEMENTS, tuple: _MAX_ELEMENTS
}  # fmt: skip


def bundle_of(value: object) -> dict[str, bytes]:
    """A value's forms.

    Raises:
        BaseException: whatever its `__repr__` raises.
    """
    bundle = {PLAIN: text_of(value)}
    if type(value) not in _SIMPLE:
        _add(bundle, _given(value))
        for name, mime in _METHODS:
            if mime not in bundle:
                _add(bundle, {mime: _asked(value, name)})
        if "image/png" not in bundle:
            _add(bundle, {"image/png": _drawn(value)})
    return bundle


def raw_bundle(forms: dict[object, object]) -> dict[str, bytes]:
    """A bundle that a program has made itself."""
    bundle: dict[str, bytes] = {PLAIN: b""}
    _add(bundle, forms)
    return bundle


def text_of(value: Any) -> bytes:
    """Its representation, cut where it is long."""
    more = ""
    limit = _SLICED.get(type(value))
    if limit is not None and len(value) > limit:
        value, more = value[:limit], f"\n... of {len(value):,} elements"
    text = repr(value)
    if len(text) > MAX_TEXT:
        more = more or f"\n... of {len(text):,} characters"
        text = text[:MAX_TEXT]
    return str.encode(text + more, "utf-8", "backslashreplace")


def _given(value: object) -> object:
    return _asked(value, "_repr_mimebundle_", include=None, exclude=None)


def _drawn(value: object) -> bytes | None:
    """A figure of matplotlib's, or of what draws with it."""
    picture = io.BytesIO()
    _asked(value, "savefig", fname=picture, format="png", bbox_inches="tight")
    return picture.getvalue() or None


def _asked(value: object, name: str, **arguments: object) -> object:
    """What a method of its class answers; None where it has none or that fails.

    Asked of the class first: an object that answers to every name means none of them.
    """
    if issubclass(type(value), type):
        return None
    try:
        if getattr(type(value), name, None) is None:
            return None
        method: Callable[..., object] = getattr(value, name)
        return method(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the fault boundary: the object's own
        return None


def _add(bundle: dict[str, bytes], forms: Any) -> None:
    if type(forms) is tuple and forms:  # with metadata, which nobody reads here
        forms = forms[0]
    if not issubclass(type(forms), dict):
        return
    left = MAX_BUNDLE - sum(map(len, bundle.values()))
    for mime, content in list(dict.items(forms))[:_MAX_FORMS]:
        if type(mime) is not str or len(mime) > _MAX_NAME or len(bundle) > _MAX_FORMS:
            continue
        try:
            data = _data(mime, content)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001, S112 - the fault boundary: no such form
            continue
        if data is not None and len(data) <= min(left, MAX_FORM):
            bundle[mime] = data
            left -= len(data)


def _data(mime: str, content: Any) -> bytes | None:
    if type(content) is tuple and content:
        content = content[0]
    if content is None:
        return None
    if isinstance(content, str):
        text = str.encode(content, "utf-8", "backslashreplace")
        is_picture = mime.startswith("image/") and not mime.endswith("+xml")
        return a2b_base64(text) if is_picture else text
    if isinstance(content, (bytes, bytearray)):
        return bytes(content)
    return json.dumps(content).encode()
