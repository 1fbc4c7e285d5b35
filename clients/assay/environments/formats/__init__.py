"""Formats: how a policy writes calls of tools, and how it reads what they answer."""

from assay.environments.formats.choosing import format_of as format_of
from assay.environments.formats.code import CodeFormat as CodeFormat
from assay.environments.formats.format import Format as Format
from assay.environments.formats.tagged import TaggedFormat as TaggedFormat
