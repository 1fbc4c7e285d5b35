"""Finds texts in the sources themselves, a piece at a time, and keeps which items hold them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from assay.viewer.sources import ViewedSource


def piece(_database: sqlite3.Connection, _sources: Mapping[int, ViewedSource]) -> bool:
    """Does a piece."""
    return False
