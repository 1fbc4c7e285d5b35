"""Environments that come with Assay; each proves itself by scripted episodes."""
