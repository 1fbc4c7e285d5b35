r"""`chemistry`: a formula, a balanced equation or a SMILES text equals the reference.

kind=formula compares compositions and charges, whatever the notation: H2O, H_2O, \ce{H2O}, and
CuSO4·5H2O equals CuSO9H10. Isomers are equal (C2H6O, CH3CH2OH); compare=written also asks for the
same elements in the same order and grouping.

kind=equation asks for a balanced equation of the reference's species: each side has the same
species as that of the reference, and the coefficients are the reference's times one positive
number. A reference without right coefficients will do if linear algebra, done exactly, finds
the one solution; one that cannot be balanced, or in more than one way, is a fault. With
coefficients=smallest they must be the smallest whole numbers. States (aq) are not compared.

kind=smiles compares canonical SMILES, for which rdkit has to be installed (`pip install rdkit`);
without it, or with a version that cannot be loaded, an item is the fault UNSUPPORTED_INPUT and
never a zero.

Several references: any of them will do. The answer is looked for by `extraction`. How formulas are
read, and how a plain "Ca2+" is understood, is in `formula`.

What a policy could game: compositions tell no isomers apart; use written or smiles where structure
is asked. Known limits: no isotopes but D and T, no polymers, no abbreviations (Et, Ph), no physical
states, conditions over an arrow are skipped. rdkit's own reading of a hostile SMILES is bounded by
length (2,000 characters) and by the worker's time only.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Literal

from assay.math.extraction import MODES, Nothing, look
from assay.reward_server import (
    UNSUPPORTED_INPUT,
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
    read_equation,
    read_species,
)

MAX_SMILES_CHARS = 2_000
_SHOWN_CHARS = 300
_VERDICTS = ("correct", "incorrect", "unparsed")


def _glance(item: VerifierItem, *, kind: str, **_: object) -> Judgement | None:
    return None if kind == "smiles" else chemistry.judge(item)


@verifier("chemistry", verdicts=_VERDICTS, glance=_glance)
def chemistry(
    item: VerifierItem,
    *,
    kind: Annotated[
        Literal["formula", "equation", "smiles"], "What is compared; smiles needs rdkit."
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
        species = read_species(text.rpartition("=")[2])
    except ChemicalFormulaError as trouble:
        return "unparsed", str(trouble)
    if species.composition != wanted.composition:
        return "incorrect", "the atoms or the charge differ"
    if strict and species.written != wanted.written:
        return "incorrect", "the same atoms, written otherwise"
    return "correct", "the same atoms and charge"


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
    if importlib.util.find_spec("rdkit") is None:
        raise Unjudgeable(
            UNSUPPORTED_INPUT, "kind=smiles needs rdkit on the reward server: pip install rdkit"
        )
    wanted = _canonical(reference.strip())
    if wanted is None:
        raise _unusable(reference, ChemicalFormulaError("rdkit cannot read it"))
    words = text.strip().strip("`$").split()
    if len(words) != 1:
        return "unparsed", "the answer is not one SMILES text"
    answer = _canonical(words[0])
    if answer is None:
        return "unparsed", "the answer is no SMILES text"
    same = answer == wanted
    return ("correct", "the same structure") if same else ("incorrect", "another structure")


@functools.lru_cache(maxsize=1024)
def _canonical(smiles: str) -> str | None:
    """The canonical SMILES of a structure; None for what rdkit cannot read."""
    if not smiles or len(smiles) > MAX_SMILES_CHARS:
        return None
    chem = importlib.import_module("rdkit.Chem")
    logger = importlib.import_module("rdkit.RDLogger")
    logger.DisableLog("rdApp.*")
    molecule = chem.MolFromSmiles(smiles)
    return None if molecule is None else str(chem.MolToSmiles(molecule))


_JUDGES: dict[str, Callable[..., tuple[str, str]]] = {
    "formula": _formulas,
    "equation": _equations,
    "smiles": _structures,
}


def _unusable(reference: str, trouble: Exception) -> Unjudgeable:
    return Unjudgeable(
        UNUSABLE_REFERENCE, f"the reference {reference[:80]!r} cannot be used: {trouble}"
    )
