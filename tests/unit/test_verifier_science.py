"""Quantities with units, and chemistry: laws, golden tables, references that cannot be used."""

from __future__ import annotations

import gzip
import importlib.util
import json
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.reward_server.domain import Candidate, Judgement, Unjudgeable, Verifier, VerifierItem
from assay.verifiers_extra.science.balance import is_balanced, solve
from assay.verifiers_extra.science.chemistry import chemistry
from assay.verifiers_extra.science.formula import (
    ChemicalFormulaError,
    read_equation,
    read_species,
)
from assay.verifiers_extra.science.numbers import find_numbers, plain, rounded
from assay.verifiers_extra.science.quantity import quantity, read_quantity
from assay.verifiers_extra.science.units import clean, read_unit


def judge(verifier: Verifier, response: str, *references: str, **parameters: Any) -> Judgement:
    complete = verifier.spec.complete(parameters)
    item = VerifierItem(Candidate(response), references=references, parameters=complete)
    judgement = verifier.judge(item)
    assert judgement.verdict in verifier.spec.verdicts
    assert verifier.glance(item) in (None, judgement)
    return judgement


# --- Numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "figures"),
    [
        ("50.7", "50.7", 3),
        ("-3.2e-4", "-0.00032", 2),
        ("1,234.5", "1234.5", 5),
        ("1{,}000", "1000", 1),
        ("1200", "1200", 2),
        ("1200.", "1200", 4),
        ("0.00120", "0.0012", 3),
        ("4.5 x 10^{3}", "4500", 2),
        (r"4.5 \times 10^{-2}", "0.045", 2),
        ("4.5\u00d710\u207b\u00b2", "0.045", 2),
        ("10^5", "100000", 0),
        ("3/4", "0.75", 0),
        (r"\frac{3}{4}", "0.75", 0),
        ("\u22122.5", "-2.5", 2),
        (".5", "0.5", 1),
    ],
)
def test_golden_numbers(text: str, value: str, figures: int) -> None:
    [number] = find_numbers(plain(text))
    assert (number.value, number.figures) == (Fraction(value), figures)


@pytest.mark.parametrize("text", ["", "e5", "x_1", "1e999", "1/0", "m2", "abc", "9" * 41 + "x"])
def test_what_is_no_number(text: str) -> None:
    assert find_numbers(plain(text)) == []


@given(st.decimals(-1_000_000, 1_000_000, places=6), st.integers(1, 8))
def test_rounding_keeps_figures_and_is_idempotent(value: Any, figures: int) -> None:
    exact = Fraction(value)
    once = rounded(exact, figures)
    assert rounded(once, figures) == once
    assert abs(once - exact) <= abs(exact) * Fraction(5, 10**figures)
    assert rounded(-exact, figures) == -once


# --- Units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # Definitions of the SI brochure, 9th edition, and of NIST SP 811.
        ("1 N", "1 kg m s^-2"),
        ("1 J", "1 N m"),
        ("1 W", "1 J/s"),
        ("1 atm", "101325 Pa"),
        ("1 bar", "10^5 Pa"),
        ("760 Torr", "1 atm"),
        ("1 cal", "4.184 J"),
        ("1 eV", "1.602176634e-19 J"),
        ("1 L", "1 dm^3"),
        ("1 mL", "1 cm3"),
        ("1 in", "2.54 cm"),
        ("1 mile", "1609.344 m"),
        ("1 lb", "453.59237 g"),
        ("1 h", "3600 s"),
        ("1 km/h", "0.2777777777777778 m/s"),
        ("1 Å", "10^-10 m"),
        ("1 G", "10^-4 T"),
        ("1 D", "3.33564095e-30 C m"),
        ("1 kWh", "3.6 MJ"),
        ("1 M", "1 mol/L"),
        ("180 °", "3.141592653589793 rad"),
        ("25 °C", "298.15 K"),
        ("212 °F", "100 °C"),
        ("1 J/°C", "1 J/K"),
        ("8.314 J/mol K", "8.314 J K^{-1} mol^{-1}"),
        ("8.314 J/(mol K)", "8.314 J K^{-1} mol^{-1}"),
        (r"1 $\mathrm{~kJ} \mathrm{~mol}^{-1}$", "1000 J/mol"),
        (r"1 \frac{\mathrm{m}}{\mathrm{s}^2}", "1 m s-2"),
        (r"1 \mu\mathrm{m}", "1000 nm"),
        ("1 µm", "1e-6 m"),
        ("5 kJmol^{-1}", "5 kJ/mol"),
        ("2 per second", "2 Hz"),
        ("3 m in length", "300 cm"),
        ("4 ft-lb", "4 ft lbf"),
        ("3 photons", "3"),
        ("1 m^{1/2}", "1 m^0.5"),
    ],
)
def test_golden_conversions(left: str, right: str) -> None:
    tight = {"relative_tolerance": 1e-8}
    assert judge(quantity, f"Answer: {left}", right, **tight).verdict == "correct"
    assert judge(quantity, f"Answer: {right}", left, **tight).verdict == "correct"


@pytest.mark.parametrize(
    ("response", "reference", "parameters", "verdict"),
    [
        ("Answer: 50.7", "50.7 atm", {}, "correct"),
        ("Answer: 50.7", "50.7 atm", {"missing_unit": "reject"}, "wrong-unit"),
        ("Answer: 50.7 m", "50.7", {}, "correct"),
        ("Answer: 50.7 m", "50.7 s", {}, "wrong-unit"),
        ("Answer: 50.7 bananas", "50.7 s", {}, "wrong-unit"),
        ("Answer: 51.2 s", "50.7 s", {}, "correct"),
        ("Answer: 51.3 s", "50.7 s", {}, "incorrect"),
        ("Answer: 53 s", "50.7 s", {"relative_tolerance": 0.05}, "correct"),
        ("Answer: -50.7 s", "50.7 s", {}, "incorrect"),
        ("Answer: 507 s", "50.7 s", {}, "incorrect"),
        ("Answer: 0.01", "0", {}, "incorrect"),
        ("Answer: 0.01", "0", {"absolute_tolerance": 0.1}, "correct"),
        ("Answer: 1.4926", "1.5", {"relative_tolerance": 0.0}, "incorrect"),
        (
            "Answer: 1.4926",
            "1.5",
            {"relative_tolerance": 0.0, "significant_figures": "rounded"},
            "correct",
        ),
        ("Answer: 1.5", "1.50", {"significant_figures": "strict"}, "incorrect"),
        ("Answer: 1.500", "1.50", {"significant_figures": "strict"}, "correct"),
        ("Answer: 4 or 5 m", "5 m", {}, "unparsed"),
        ("Answer: 5.0 ± 0.1 m", "5 m", {}, "correct"),
        ("Answer: P = nRT/V = 50.7 atm.", "50.7 atm", {}, "correct"),
        ("Answer: 9^9^9^9 m", "3 m", {}, "unparsed"),
        ("Answer: __import__('os').system('x')", "3 m", {}, "unparsed"),
        ("Answer: 1e99999 m", "3 m", {}, "unparsed"),
        ("Answer: 5 m**999", "5 m", {}, "unparsed"),
        (r"\boxed{5}", "5 m", {}, "correct"),
        ("", "5 m", {}, "unparsed"),
        ("Answer: 50 %", "0.5", {}, "correct"),
        ("Answer: 0.5", "50 %", {}, "incorrect"),  # taken to be in percent, as questions ask
        ("Answer: 3 dB", "3 dB", {}, "correct"),
        ("Answer: 3", "3 dB", {"missing_unit": "reject"}, "wrong-unit"),
    ],
)
def test_quantities(response: str, reference: str, parameters: Any, verdict: str) -> None:
    judgement = judge(quantity, response, reference, **parameters)
    assert judgement.verdict == verdict
    assert judgement.reward == float(verdict == "correct")


def test_any_of_several_references_will_do() -> None:
    assert judge(quantity, "Answer: 2 km", "3 s", "2000 m").verdict == "correct"


@pytest.mark.parametrize("reference", ["", "fast", "5 m^99", "4 or 5 m", '{"unit": "m"}', "{"])
def test_unusable_quantities(reference: str) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(quantity, "Answer: 5 m", reference)
    assert caught.value.reason == "UNUSABLE_REFERENCE"


@given(
    st.fractions(Fraction(-1000), Fraction(1000)).filter(bool),
    st.sampled_from(["m", "kg", "J/mol", "km/h", "kPa", "eV", "cm^3", "°C", "%"]),
)
def test_every_quantity_equals_itself(value: Fraction, unit: str) -> None:
    text = f"{float(value):.9f} {unit}"
    if float(f"{float(value):.9f}"):
        strict = {"relative_tolerance": 0.0}
        assert judge(quantity, f"Answer: {text}", text, **strict).verdict == "correct"


ALPHABET = "0123456789.,+-*/^{}()[]\\ kmsJ°%eE=~$µ\u00b7\u00d7\u207b\u00b2pertofrac"


@settings(max_examples=300)
@given(st.text(alphabet=ALPHABET, max_size=120))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        read_quantity(text)
    except ValueError:
        return


@pytest.mark.parametrize(
    "text",
    ["5 " + "m " * 990, "5 " + "(" * 900, "5 " + "m^" * 900, "1" * 2000, "{" * 1900, "m/" * 900,
     "5" + " " * 1900, "5 " + "a" * 1900, "\\frac{" * 300, "5 " + "{m}" * 600, "1," * 900,
     "5 m" + "²" * 1900, "10^" * 600, "5 " + "\\mathrm{" * 200],
)  # fmt: skip
def test_hostile_quantities_are_quick(text: str) -> None:
    read_unit("kg")  # loads what is slow to load
    started_s = time.process_time()
    judge(quantity, f"<answer>{text}</answer>", "5 m")
    assert time.process_time() - started_s < 1


@pytest.mark.data
def test_every_answer_of_scibench_can_be_used(shared_data: Path) -> None:
    """Each of the 580 answers with its unit is read, and equals itself in another writing."""
    verifier = quantity
    parameters = verifier.spec.complete({"relative_tolerance": 1e-9})
    judged = 0
    with gzip.open(shared_data / "scibench.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            unit = " ".join(row["unit"].split()).strip()
            joint = r" \times " if unit.lstrip("$ \\mathr{").startswith("10^") else r"\ "
            item = VerifierItem(
                Candidate(f"Thus $x = \\boxed{{{row['answer'].strip()}{joint}{unit}}}$"),
                data={"value": row["answer"], "unit": row["unit"]},
                parameters=parameters,
            )
            assert verifier.judge(item).verdict == "correct", (row["answer"], row["unit"])
            judged += 1
    assert judged == 580


# --- Chemistry ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "atoms", "charge"),
    [
        ("H2O", {"H": 2, "O": 1}, 0),
        ("H₂O(l)", {"H": 2, "O": 1}, 0),
        (r"\ce{H2O}", {"H": 2, "O": 1}, 0),
        (r"\mathrm{C_{6}H_{12}O_{6}}", {"C": 6, "H": 12, "O": 6}, 0),
        ("CuSO4·5H2O", {"Cu": 1, "S": 1, "O": 9, "H": 10}, 0),
        ("CuSO4.5H2O", {"Cu": 1, "S": 1, "O": 9, "H": 10}, 0),
        ("Ca(OH)2", {"Ca": 1, "O": 2, "H": 2}, 0),
        ("K4[Fe(CN)6]", {"K": 4, "Fe": 1, "C": 6, "N": 6}, 0),
        ("[Fe(CN)6]^{4-}", {"Fe": 1, "C": 6, "N": 6}, -4),
        ("SO4^2-", {"S": 1, "O": 4}, -2),
        ("SO42-", {"S": 1, "O": 4}, -2),
        ("SO₄²⁻", {"S": 1, "O": 4}, -2),
        ("NO3-", {"N": 1, "O": 3}, -1),
        ("NH4+", {"N": 1, "H": 4}, 1),
        ("Ca2+", {"Ca": 1}, 2),
        ("Fe³⁺", {"Fe": 1}, 3),
        ("Hg22+", {"Hg": 2}, 2),
        ("Cu++", {"Cu": 1}, 2),
        ("e-", {}, -1),
        ("Co", {"Co": 1}, 0),
        ("CO", {"C": 1, "O": 1}, 0),
        ("((CH3)2CH)2O", {"C": 6, "H": 14, "O": 1}, 0),
    ],
)
def test_golden_formulas(text: str, atoms: dict[str, int], charge: int) -> None:
    species = read_species(text)
    assert (dict(species.atoms), species.charge) == (atoms, charge)


@pytest.mark.parametrize(
    "text",
    ["", "water", "Xx2", "h2o", "H2O)", "(H2O", "2", "H0", "()2", "H" * 400,
     "(" * 20 + "H" + ")" * 20, "H99999", "H2O + O2", "C(-1)", "\x00", "H2O; import os"],
)  # fmt: skip
def test_what_is_no_formula(text: str) -> None:
    with pytest.raises(ChemicalFormulaError):
        read_species(text)


@given(st.text(alphabet="HOCNaFe0123456789()[]{}^+-_\u00b7. \\mathrce>=\u2192", max_size=80))
def test_any_text_is_chemistry_or_refused(text: str) -> None:
    for read in (read_species, read_equation):
        try:
            read(text)
        except ChemicalFormulaError:
            continue


# Balanced equations of textbooks: combustion, acid and base, redox in acid, thermite, respiration.
BALANCED = [
    "2H2 + O2 -> 2H2O",
    "CH4 + 2O2 -> CO2 + 2H2O",
    "C6H12O6 + 6O2 → 6CO2 + 6H2O",
    "H2SO4 + 2NaOH = Na2SO4 + 2H2O",
    "MnO4^- + 8H^+ + 5Fe^{2+} -> Mn^{2+} + 5Fe^{3+} + 4H2O",
    "Cr2O7^2- + 14H+ + 6e- -> 2Cr3+ + 7H2O",
    "2Al + Fe2O3 -> Al2O3 + 2Fe",
    "3Cu + 8HNO3 -> 3Cu(NO3)2 + 2NO + 4H2O",
    "Ag+ + Cl- -> AgCl",
    "N2(g) + 3H2(g) <=> 2NH3(g)",
]


@pytest.mark.parametrize("text", BALANCED)
def test_coefficients_follow_from_the_species(text: str) -> None:
    equation = read_equation(text)
    assert is_balanced(equation)
    solution = solve(equation)
    assert solution is not None
    terms = [*equation.left, *equation.right]
    ratios = {
        coefficient / value
        for (coefficient, _), value in zip(terms, solution.values(), strict=True)
    }
    assert len(ratios) == 1


@pytest.mark.parametrize(
    ("response", "reference", "parameters", "verdict"),
    [
        ("2H2 + O2 -> 2H2O", "2H2 + O2 -> 2H2O", {}, "correct"),
        ("O2 + 2H2 → 2 H2O", "2H2 + O2 -> 2H2O", {}, "correct"),
        ("4H2 + 2O2 = 4H2O", "2H2 + O2 -> 2H2O", {}, "correct"),
        ("4H2 + 2O2 = 4H2O", "2H2 + O2 -> 2H2O", {"coefficients": "smallest"}, "incorrect"),
        ("H2 + 1/2 O2 = H2O", "2H2 + O2 -> 2H2O", {}, "correct"),
        ("H2 + O2 -> H2O", "2H2 + O2 -> 2H2O", {}, "incorrect"),
        ("2H2 + O2 -> 2H2O", "H2 + O2 -> H2O", {}, "correct"),
        ("H2 + O2 -> H2O2", "2H2 + O2 -> 2H2O", {}, "incorrect"),
        ("2H2O -> 2H2 + O2", "2H2 + O2 -> 2H2O", {}, "incorrect"),
        (r"\ce{2H2 + O2 -> 2H2O}", "2H2 + O2 -> 2H2O", {}, "correct"),
        ("no reaction", "2H2 + O2 -> 2H2O", {}, "unparsed"),
        ("2H2 + O2", "2H2 + O2 -> 2H2O", {}, "unparsed"),
    ],
)
def test_equations(response: str, reference: str, parameters: Any, verdict: str) -> None:
    answer = f"<answer>{response}</answer>"
    judgement = judge(chemistry, answer, reference, kind="equation", **parameters)
    assert judgement.verdict == verdict


@pytest.mark.parametrize(
    "reference",
    ["H2O", "H2 -> O2", "H2 + O2 -> H2O + H2O2", "A -> B", "", "H2 + Cl2 -> HCl -> NaCl"],
)
def test_unusable_equations(reference: str) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(chemistry, "<answer>H2 -> H2</answer>", reference, kind="equation")
    assert caught.value.reason == "UNUSABLE_REFERENCE"


def test_isomers_are_told_apart_if_asked() -> None:
    answer = "<answer>CH3CH2OH</answer>"
    assert judge(chemistry, answer, "C2H6O").verdict == "correct"
    assert judge(chemistry, answer, "CH3OCH3", compare="written").verdict == "incorrect"
    spaced = "<answer>CH_3CH_2OH</answer>"
    assert judge(chemistry, spaced, "CH3CH2OH", compare="written").verdict == "correct"


@pytest.mark.skipif(importlib.util.find_spec("rdkit") is not None, reason="rdkit is installed")
def test_smiles_without_rdkit_are_a_fault_that_says_what_to_install() -> None:
    with pytest.raises(Unjudgeable, match="the extra chemistry") as caught:
        judge(chemistry, "<answer>CCO</answer>", "OCC", kind="smiles")
    assert caught.value.reason == "UNSUPPORTED_INPUT"


@pytest.mark.skipif(importlib.util.find_spec("rdkit") is None, reason="rdkit is not installed")
def test_smiles_with_rdkit() -> None:
    for answer, verdict in (("OCC", "correct"), ("CCC", "incorrect"), ("C(", "unparsed")):
        text = f"<answer>{answer}</answer>"
        assert judge(chemistry, text, "CCO", kind="smiles").verdict == verdict


@pytest.mark.skipif(importlib.util.find_spec("rdkit") is None, reason="rdkit is not installed")
@pytest.mark.parametrize(
    ("kind", "answer", "reference", "verdict"),
    [
        ("product", "CC(=O)OCC.[Na+].[Cl-]", "CCOC(C)=O", "correct"),
        ("product", "CCOC(C)=O.O", "CCOC(C)=O", "correct"),
        ("product", "CCOC(=O)CC.CCO", "CCOC(C)=O", "incorrect"),
        ("product", "C((", "CCOC(C)=O", "unparsed"),
        ("isomer", "CCO", "C2H6O", "correct"),
        ("isomer", "COC", "CCO", "correct"),
        ("isomer", "CCC", "C2H6O", "incorrect"),
        ("isomer", "C2H6O", "C2H6O", "unparsed"),
    ],
)
def test_products_and_isomers(kind: str, answer: str, reference: str, verdict: str) -> None:
    response = f"<answer>{answer}</answer>"
    assert judge(chemistry, response, reference, kind=kind).verdict == verdict


def test_cleaning_is_idempotent() -> None:
    for text in (r"$\mathrm{~kJ} \mathrm{~mol}^{-1}$", "5 m", r"{ }^{\circ} \mathrm{C}"):
        assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    ("response", "reference", "verdict"),
    [
        ("72 bpm", "1.2 Hz", "correct"),
        ("2 kWh", "7.2 MJ", "correct"),
        ("So it takes 5 minutes to fall", "300 s", "correct"),
        ("So it takes 5 hours to fall", "5 s", "incorrect"),
        ("60 bpm", "60 rpm", "incorrect"),
        ("It falls 5 seconds long", "5 m", "wrong-unit"),
        ("so 5", "5 m", "correct"),
    ],
)
def test_a_number_without_a_mark_keeps_its_unit(
    response: str, reference: str, verdict: str
) -> None:
    assert judge(quantity, response, reference).verdict == verdict
