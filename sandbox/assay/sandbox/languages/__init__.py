"""Languages: their table, which of them this machine serves, how their programs compile.

* `table.LANGUAGES` has one entry a language.
* `discover` finds the tools, `warm_up` prepares files in advance, `self_test` proves a language.
* `LanguagePreparer` makes a program ready to run, with a `CompileCache` behind it.
"""

from assay.sandbox.languages.cache import CompileCache
from assay.sandbox.languages.preparer import LanguagePreparer, PreparedProgram
from assay.sandbox.languages.selftest import self_test
from assay.sandbox.languages.table import LANGUAGES, find_language
from assay.sandbox.languages.toolchains import (
    MissingLanguage,
    ServedLanguage,
    Toolchain,
    Toolchains,
    discover,
    language_info,
)
from assay.sandbox.languages.warm import warm_up

__all__ = [
    "LANGUAGES",
    "CompileCache",
    "LanguagePreparer",
    "MissingLanguage",
    "PreparedProgram",
    "ServedLanguage",
    "Toolchain",
    "Toolchains",
    "discover",
    "find_language",
    "language_info",
    "self_test",
    "warm_up",
]
