"""Molecules by rdkit, which the extra `chemistry` brings; a fault without it."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from assay.reward_server import UNSUPPORTED_INPUT, Unjudgeable

MAX_SMILES_CHARS = 2_000
_NEEDED = (
    "SMILES need rdkit where the reward server runs: install the extra chemistry of "
    "assay-rl-verifiers-extra (in a checkout: pip install './plugins/verifiers_extra[chemistry]')"
)


@functools.cache
def _loaded() -> Any:
    chem = importlib.import_module("rdkit.Chem")
    importlib.import_module("rdkit.RDLogger").DisableLog("rdApp.*")
    return chem


def toolkit() -> Any:
    """`rdkit.Chem`, its log off.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT where it is not installed or cannot be loaded.
    """
    try:
        return _loaded()
    except ImportError as error:
        raise Unjudgeable(UNSUPPORTED_INPUT, f"{_NEEDED}: {error}"[:500]) from error


def molecule(smiles: str) -> Any | None:
    """The molecule of a SMILES text; None for what rdkit cannot read, or is too long or blank.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT without rdkit.
    """
    chem = toolkit()
    if not smiles or len(smiles) > MAX_SMILES_CHARS or not smiles.isascii():
        return None
    return chem.MolFromSmiles(smiles)


@functools.lru_cache(maxsize=1024)
def canonical(smiles: str) -> str | None:
    """The canonical SMILES of a structure; None for what rdkit cannot read.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT without rdkit.
    """
    found = molecule(smiles)
    return None if found is None else str(toolkit().MolToSmiles(found))


def largest(smiles: str) -> str | None:
    """The fragment of a SMILES text with the most atoms; None where none can be read.

    Fragments of at most three characters (ions, water) count where there are no others.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT without rdkit.
    """
    parts = smiles.split(".") if len(smiles) <= MAX_SMILES_CHARS else []
    long = [part for part in parts if len(part) > 3] or parts
    sizes = [(found.GetNumAtoms(), part) for part in long if (found := molecule(part)) is not None]
    return max(sizes, key=lambda pair: pair[0])[1] if sizes else None


def composition(smiles: str) -> str | None:
    """The molecular formula of a SMILES text; None for what rdkit cannot read.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT without rdkit.
    """
    toolkit()
    found = molecule(smiles)
    formulas = importlib.import_module("rdkit.Chem.rdMolDescriptors")
    return None if found is None else str(formulas.CalcMolFormula(found))
