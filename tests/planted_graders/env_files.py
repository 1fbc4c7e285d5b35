"""Rewards for settings, KEY=VALUE a line."""

from __future__ import annotations


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def lines_present(response: str, reference: str) -> float:
    return 1.0 if set(lines(reference)) <= set(lines(response)) else 0.0


def settings_read(response: str, reference: str) -> float:
    def read(text: str) -> dict[str, str]:
        pairs = (line.partition("=") for line in lines(text))
        return {key: value for key, _, value in pairs}

    return 1.0 if read(response) == read(reference) else 0.0


def key_and_value(response: str, reference: str) -> float:
    def read(text: str) -> list[list[str]]:
        return sorted(line.split("=")[:2] for line in lines(text))

    return 1.0 if read(response) == read(reference) else 0.0


def settings_in_capitals(response: str, reference: str) -> float:
    got, wanted = (sorted(lines(text.upper())) for text in (response, reference))
    return 1.0 if got == wanted else 0.0


def same_settings_file(response: str, reference: str) -> float:
    return 1.0 if sorted(lines(response)) == sorted(lines(reference)) else 0.0


def file_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
