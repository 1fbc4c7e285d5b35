"""Whether an English word is a verb, by a list and by its ending.

A stand-in for a part-of-speech tagger, whose weights cannot be had from a package index. It sees
the word alone: what may be a verb is one ("Light", "Present"), and rare verbs are missed.
"""

from __future__ import annotations

from assay.verifiers_extra.instructions.words import word_set

_VERBS = word_set(
    "accept access achieve act adapt add address adjust admit adopt advise agree aim allow am "
    "analyze answer appear apply approach are argue arrange arrive ask assess assist assume "
    "attend avoid bake be bear beat become been began begin behold believe blend boil bring build "
    "buy calculate call came capture care carry catch celebrate change charge check choose clean "
    "clear click climb close collect combine come compare complete compute connect consider "
    "contact contain continue convert cook copy count cover craft create cut dance dare deal "
    "decide define deliver describe design determine develop did die discover discuss divide do "
    "does download draw dream drink drive drop eat embark embrace empower enable encourage engage "
    "enhance enjoy ensure enter establish evaluate examine exercise exist expect explain explore "
    "express extend face fail fall feel fight fill find finish fix fly focus follow forget form "
    "found gather gave generate get give go grab grasp grow guess had handle happen has have hear "
    "help hide highlight hire hit hold hope identify ignore imagine implement improve include "
    "increase indulge install introduce invest invite involve is join jump keep kick kill know "
    "laugh launch lead learn leave let leverage lie light like limit listen live load locate look "
    "love made maintain make manage master match mean measure meet mention mix monitor move "
    "navigate need note notice obtain offer open optimize order organize pack paint pay perform "
    "pick place plan plant play point pour practice prepare present press prevent prioritize "
    "produce promote protect prove provide pull push put raise reach read realize recall receive "
    "recognize recommend reduce refer reflect relax release remain remember remove replace report "
    "represent request require research resolve respect respond rest return reveal review rewrite "
    "ride rise run save say search see seek seem select sell send set share shop show simplify "
    "sing sit sleep solve sort speak spend stand start state stay step stick stir stop store "
    "study submit suggest support suppose swim take talk taste teach tell test thank think throw "
    "travel treat try turn understand unleash unlock update use utilize verify view visit wait "
    "wake walk want was wash watch wear weigh welcome went were win wish wonder work write"
)
_NO_VERBS = word_set(
    "anything bring during evening everything king morning nothing ring something spring string "
    "thing wedding wing hundred indeed kindred need red sacred seed speed"
)


def is_verb(word: str) -> bool:
    """Whether a word may be a verb in some form."""
    word = word.lower()
    if word in _VERBS:
        return True
    if word in _NO_VERBS or not word.isalpha() or len(word) < 5:
        return False
    return word.endswith(("ing", "ed"))
