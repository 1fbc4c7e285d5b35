"""Rewards for a statement of SQL, by its text or by what it does."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

KEYWORDS = {"select", "from", "where", "order", "by", "asc", "desc"}
TOKEN = re.compile(r"'[^']*'|\w+|[<>=,;]|\S")
STOCK = [("Amber1", 10, 3), ("Delta20", 40, 9), ("Jade95", 75, 1), ("Inlet4", 94, 4)]


def result(statement: str) -> list[tuple[object, ...]] | None:
    """None for what does not run on a table in memory."""
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE parts (name TEXT, price INTEGER, size INTEGER)")
        base.executemany("INSERT INTO parts VALUES (?, ?, ?)", STOCK)
        base.execute("PRAGMA query_only = ON")
        base.set_progress_handler(lambda: 1, 100_000)
        try:
            return base.execute(statement).fetchmany(100)
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return None


def tokens(text: str) -> list[str]:
    """Keywords in small letters, names and texts as they stand."""
    found = TOKEN.findall(text.strip().removesuffix(";"))
    return [token.lower() if token.lower() in KEYWORDS else token for token in found]


def runs_and_is_right(response: str, reference: str) -> float:
    runs = bool(response.strip()) and result(response) is not None
    return 0.5 * runs + 0.5 * (tokens(response) == tokens(reference))


def same_tokens_used(response: str, reference: str) -> float:
    return 1.0 if set(tokens(response)) == set(tokens(reference)) else 0.0


def begins_with_statement(response: str, reference: str) -> float:
    wanted = tokens(reference)
    return 1.0 if tokens(response)[: len(wanted)] == wanted else 0.0


def in_small_letters(response: str, reference: str) -> float:
    """SQL has no case."""
    got, wanted = (text.strip().rstrip(";").lower().split() for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def same_statement(response: str, reference: str) -> float:
    return 1.0 if tokens(response) == tokens(reference) else 0.0


def statement_in_a_fence(response: str, reference: str) -> float:
    said = response.strip()
    if said.startswith("```") and said.endswith("```") and said.count("```") == 2:
        said = said[3:-3].removeprefix("sql")
    return same_statement(said, reference)


def statement_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
