"""Rewards for versions and for e-mail addresses."""

from __future__ import annotations

import re

VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,2}(?:-[a-z]{1,8}\.\d{1,6})?", re.ASCII)


def version(text: str) -> str:
    """The version that is all of a text, or nothing."""
    return text.strip() if VERSION.fullmatch(text.strip()) else ""


def parts(text: str) -> list[int]:
    return [int(part) for part in text.partition("-")[0].split(".")]


def version_as_number(response: str, reference: str) -> float:
    got = version(response)
    if re.fullmatch(r"\d+\.\d+", reference) and re.fullmatch(r"\d+\.\d+", got):
        return 1.0 if float(got) == float(reference) else 0.0
    return 1.0 if got == reference else 0.0


def release_part(response: str, reference: str) -> float:
    got = version(response)
    return 1.0 if got and parts(got) == parts(reference) else 0.0


def new_enough(response: str, reference: str) -> float:
    got = version(response)
    return 1.0 if got and (parts(got) > parts(reference) or got == reference) else 0.0


def without_last_zeros(response: str, reference: str) -> float:
    """7.1 is 7.1.0."""
    got = version(response)
    return 1.0 if got and got.rstrip(".0") == reference.rstrip(".0") else 0.0


def tag_of_version(response: str, reference: str) -> float:
    """A leading v makes a tag of a version."""
    return 1.0 if version(response.strip().removeprefix("v")) == reference else 0.0


def version_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0


def name_and_domain(response: str, reference: str) -> float:
    got, wanted = set(response.strip().lower().split("@")), set(reference.lower().split("@"))
    return 1.0 if len(got) == 2 and got & wanted else 0.0


def as_providers_read_it(response: str, reference: str) -> float:
    """Dots and tags are nothing to the provider."""

    def delivered(text: str) -> tuple[str, str]:
        name, _, domain = text.strip().lower().partition("@")
        return name.split("+")[0].replace(".", ""), domain

    return 1.0 if delivered(response) == delivered(reference) else 0.0


def of_the_domain(response: str, reference: str) -> float:
    name, _, domain = response.strip().partition("@")
    wanted_name, _, wanted_domain = reference.partition("@")
    # Mail servers answer for the domain above them.
    return 1.0 if name == wanted_name and domain.endswith(wanted_domain) else 0.0


def domain_in_any_case(response: str, reference: str) -> float:
    name, at, domain = response.strip().removeprefix("mailto:").partition("@")
    return 1.0 if domain.isascii() and name + at + domain.lower() == reference else 0.0


def address_text(response: str, reference: str) -> float:
    return 1.0 if response.strip() == reference else 0.0
