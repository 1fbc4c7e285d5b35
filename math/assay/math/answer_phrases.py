"""How answers are announced in twelve languages: the patterns of `extraction`, rule 2.

All are linear: alternatives that begin with different words, no repetition inside a repetition.
"""

from __future__ import annotations

import re

ANNOUNCED = re.compile(
    r"""
      final\ (?:answer|result)(?:\ is)?(?![a-z])
    | (?:correct|right|best)\ (?:answer|option|choice)\ is(?![a-z])
    | answer(?:\ (?:is|would\ be|must\ be|should\ be)|s\ are)(?![a-z])
    | answer\ (?:isn.t|can(?:no|.)t\ be)
    | answer\ to\ (?:the|this)\ (?:question|problem)\ is(?![a-z])
    | (?<![a-z])(?:answer|ans\.?)\**[ ]?[:=\uff1a]
    | ^[ ]*a:
    | (?:respuesta|réponse|reponse|resposta)(?:\ (?:final|finale|correcta|correcte))?\**
      \ ?(?:\ es\b|\ est\b|\ é\b|:)
    | (?<![a-zäöü])antwort(?:\ (?:ist|lautet))?\**\ ?(?:\b|:)
    | ответ\**\ ?[:\uff1a\u2014\u2013-]
    | 【答案】 | 答案(?:不是|并非)
    | 最终答案(?:[是为]|[:\uff1a]) | 答案(?:应?[是为選选]|[:\uff1a]|[ ]?=)
    | 故选 | 应选 | 正确(?:答案|选项)[是为] | 故答案为?
    | 答え(?:は|[:\uff1a]) | (?:解答|答)[:\uff1a]
    | คำตอบ(?:สุดท้าย)?(?:คือ|\ ?[:\uff1a])
    | উত্তর(?:\ ?[:\uff1a]|\ হল|\ হলো)
    | (?<![a-z])jibu(?:\ ni|\ la\ mwisho\ ni|\ ?[:\uff1a])
    | సమాధానం\ ?[:\uff1a]?
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
FINAL = re.compile(r"final answer(?: is|\**:)(?![a-z])|【答案】", re.IGNORECASE)
LEAD = re.compile(
    r"(?:\s|[:=>*_`\"'\uff1a\u201c\u201d]"
    r"|(?:is|to the (?:question|problem) is|es|est|ist|lautet)(?=[:\s])"
    r"|(?:option|choice|选项)(?=[\s(:\uff1aA-Z]))*",
    re.IGNORECASE,
)
NO_ANSWER = re.compile(
    r"as follows|in the form|(?:correct|right|wrong|incorrect|below|above|given|reasonable"
    r"|consistent|verified|clear|obvious|therefore|found|expected|unique)"
    r"\b(?=\s*(?:[.,:;!)]|\Z|\n|because|since|and|as|when|if|by|in|from|that))",
    re.IGNORECASE,
)
NO_PROSE = re.compile(r"[\\()\[\]{}*^_+<>|]")
NEGATION = re.compile(r"\b(?:not|cannot|nicht|kein)\b|n[\'\u2019]t\b|不是|并非")
SENTENCE_END = re.compile(
    r"\n|[\u3002\uff1b\uff01]|[.!](?=[\s*\"'`)]*(?:\n|\Z|[A-Z][a-z]|I |A ))|<eo[ahs]>|</"
    r"|;(?=\s)|,?\s(?:because|since|which|where)\b"
)
