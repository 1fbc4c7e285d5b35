"""Which language a text is in: langdetect, made repeatable and bounded.

langdetect (a port of Shuyo's n-gram detector) samples at random; with its seed fixed equal texts
get equal answers. It reads some 10,000 characters, so it gets at most `MAX_CHARS`. Loading its
profiles takes about half a second, hence `load`.
"""

from __future__ import annotations

MAX_CHARS = 20_000


def load() -> None:
    """Loads the profiles of the languages."""
    detect("one two three")


def detect(text: str) -> str | None:
    """The language of a text as ISO 639-1 code, "zh-cn" and "zh-tw" for Chinese.

    None when the text has nothing to go by, such as no letters.
    """
    from langdetect import DetectorFactory  # noqa: PLC0415 - slow to load
    from langdetect import detect as detect_language  # noqa: PLC0415
    from langdetect.lang_detect_exception import LangDetectException  # noqa: PLC0415

    DetectorFactory.seed = 0
    try:
        return str(detect_language(text[:MAX_CHARS]))
    except LangDetectException:
        return None
