r"""`chemistry`: a formula, a balanced equation or a SMILES text equals the reference.

kind=formula compares compositions and charges, whatever the notation: H2O, H_2O, \ce{H2O}, and
CuSO4·5H2O equals CuSO9H10. Isomers are equal (C2H6O, CH3CH2OH); compare=written also asks for the
same elements in the same order and grouping.

kind=equation asks for a balanced equation of the reference's species: each side has the same
species as that of the reference, and the coefficients are the reference's times one positive
number. A reference without right coefficients will do if linear algebra, done exactly, finds
the one solution; one that cannot be balanced, or in more than one way, is a fault. With
coefficients=smallest they must be the smallest whole numbers. States (aq) are not compared.

kind=smiles compares canonical SMILES, for which the extra `chemistry` of this package has to be
installed (rdkit); without it, or with a version that cannot be loaded, an item is the fault
UNSUPPORTED_INPUT, which says so, and never a zero. kind=product does the same for the largest
fragment of each text, so that counter-ions and by-products do not count, as in ether0's reaction
products. kind=isomer asks for a SMILES text of the reference's formula, which is written as a
formula or as SMILES.

Several references: any of them will do. The answer is looked for by `extraction`. How formulas are
read, and how a plain "Ca2+" is understood, is in `formula`.

What a policy could game: compositions tell no isomers apart; use written or smiles where structure
is asked. Of an answer "X = H2O" what follows the sign counts. Known limits: no isotopes but D and
T, no polymers, no abbreviations (Et, Ph), no physical states, conditions over an arrow are skipped.
rdkit's own reading of a hostile SMILES is bounded by length (2,000 characters) and by the worker's
time only. Of ether0's tasks (arXiv 2506.17238) solubility, one-step synthesis and
functional groups are not served, nor its test of reasonable molecules: isomer pays for absurd ones.

Measured: 82 ways of writing 30 formulas are right but for one, \chemfig; none of 40 near misses is.
kind=product gives what ether0's product_eval does on 400 of 400 generated pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Literal

from assay.math.extraction import MODES, Nothing, look
from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    Judgement,
    OneOf,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.science.balance import amounts, is_balanced, solve
from assay.verifiers_extra.science.formula import (
    ChemicalFormulaError,
    Equation,
    Species,
    read_equation,
    read_species,
)
from assay.verifiers_extra.science.structures import canonical, composition, largest

_SHOWN_CHARS = 300
_VERDICTS = ("correct", "incorrect", "unparsed")


def _glance(item: VerifierItem, *, kind: str, **_: object) -> Judgement | None:
    return None if kind not in ("formula", "equation") else chemistry.judge(item)


@verifier("chemistry", version="2", verdicts=_VERDICTS, glance=_glance)
def chemistry(
    item: VerifierItem,
    *,
    kind: Annotated[
        Literal["formula", "equation", "smiles", "product", "isomer"],
        "What is compared; smiles, product and isomer need rdkit.",
    ] = "formula",
    compare: Annotated[
        Literal["composition", "written"],
        "For formulas: atoms and charge, or the same writing too.",
    ] = "composition",
    coefficients: Annotated[
        Literal["any", "smallest"],
        "For equations: any multiple of the reference's, or the smallest whole numbers.",
    ] = "any",
    extract: Annotated[str, OneOf(MODES), "Where the answer stands in the response."] = "auto",
) -> Judgement:
    """A formula, a balanced equation or a SMILES text equals the reference's.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that cannot be read or balanced,
            UNSUPPORTED_INPUT for SMILES without rdkit.
    """
    judge = _JUDGES[kind]
    strict = compare == "written" if kind == "formula" else coefficients == "smallest"
    found = look(item.response(), extract)
    text = "" if isinstance(found, Nothing) else found.text
    judged = [judge(text, reference, strict=strict) for reference in item.answers()]
    verdict, why = min(judged, key=lambda pair: _VERDICTS.index(pair[0]))
    if isinstance(found, Nothing):
        verdict, why = "unparsed", found.why
    return Judgement.composed(
        verdict,
        (Component("correctness", float(verdict == "correct")),),
        extracted_answer=text[:_SHOWN_CHARS] or None,
        explanation=why[:500],
    )


def _formulas(text: str, reference: str, *, strict: bool) -> tuple[str, str]:
    """A verdict and why, for formulas."""
    try:
        wanted = read_species(reference)
    except ChemicalFormulaError as trouble:
        raise _unusable(reference, trouble) from trouble
    try:
        species = _species(text)
    except ChemicalFormulaError as trouble:
        return "unparsed", str(trouble)
    if species.composition != wanted.composition:
        return "incorrect", "the atoms or the charge differ"
    if strict and species.written != wanted.written:
        return "incorrect", "the same atoms, written otherwise"
    return "correct", "the same atoms and charge"


def _species(text: str) -> Species:
    """The formula of an answer; behind "=" where the whole is none ("X = H2O").

    Raises:
        ChemicalFormulaError: it holds none.
    """
    try:
        return read_species(text)
    except ChemicalFormulaError:
        _, equals, last = text.rpartition("=")
        if not equals:
            raise
        return read_species(last)


def _equations(text: str, reference: str, *, strict: bool) -> tuple[str, str]:
    """A verdict and why, for equations."""
    try:
        equation = read_equation(reference)
    except ChemicalFormulaError as trouble:
        raise _unusable(reference, trouble) from trouble
    wanted = amounts(equation) if is_balanced(equation) else solve(equation)
    if wanted is None:
        why = "it is not balanced, nor balanced by one set of coefficients"
        raise _unusable(reference, ChemicalFormulaError(why))
    try:
        answer = read_equation(text)
    except ChemicalFormulaError as trouble:
        return "unparsed", str(trouble)
    return _compare(answer, wanted, smallest=strict)


def _compare(answer: Equation, wanted: dict[Any, Fraction], *, smallest: bool) -> tuple[str, str]:
    found = amounts(answer)
    if found.keys() != wanted.keys():
        return "incorrect", "other species than the reference's"
    if not is_balanced(answer):
        return "incorrect", "not balanced"
    if len({found[key] / wanted[key] for key in wanted}) != 1:
        return "incorrect", "balanced, with other proportions than the reference's"
    whole = all(value.denominator == 1 for value in found.values())
    if smallest and not (whole and math.gcd(*(int(value) for value in found.values())) == 1):
        return "incorrect", "balanced, not with the smallest whole numbers"
    return "correct", "balanced, of the reference's species"


def _structures(text: str, reference: str, *, strict: bool) -> tuple[str, str]:
    """A verdict and why, for SMILES."""
    del strict
    wanted = canonical(reference.strip())
    if wanted is None:
        raise _unusable(reference, ChemicalFormulaError("rdkit cannot read it"))
    words = text.strip().strip("`$").split()
    if len(words) != 1:
        return "unparsed", "the answer is not one SMILES text"
    answer = canonical(words[0])
    if answer is None:
        return "unparsed", "the answer is no SMILES text"
    same = answer == wanted
    return ("correct", "the same structure") if same else ("incorrect", "another structure")


def _products(text: str, reference: str, *, strict: bool) -> tuple[str, str]:
    """A verdict and why, for the largest fragments of two SMILES texts."""
    wanted = largest(reference.strip())
    if wanted is None:
        raise _unusable(reference, ChemicalFormulaError("rdkit can read no fragment of it"))
    return _structures(_largest_of(text), wanted, strict=strict)


def _largest_of(text: str) -> str:
    words = text.strip().strip("`$").split()
    return (largest(words[0]) or words[0]) if len(words) == 1 else text


def _isomers(text: str, reference: str, *, strict: bool) -> tuple[str, str]:
    """A verdict and why, for a SMILES text of a formula."""
    wanted = composition(reference.strip())
    if wanted is None:
        try:
            wanted = read_species(reference).written
        except ChemicalFormulaError as trouble:
            raise _unusable(reference, trouble) from trouble
    words = text.strip().strip("`$").split()
    found = composition(words[0]) if len(words) == 1 else None
    if found is None:
        return "unparsed", "the answer is no SMILES text"
    del strict
    same = read_species(found).composition == read_species(wanted).composition
    return ("correct" if same else "incorrect"), f"a molecule of {found}"


_JUDGES: dict[str, Callable[..., tuple[str, str]]] = {
    "formula": _formulas,
    "equation": _equations,
    "smiles": _structures,
    "product": _products,
    "isomer": _isomers,
}


def _unusable(reference: str, trouble: Exception) -> Unjudgeable:
    return Unjudgeable(
        UNUSABLE_REFERENCE, f"the reference {reference[:80]!r} cannot be used: {trouble}"
    )
