"""Adapters: Assay's rewards in other trainers, one module each, documented in docs/trainers."""
