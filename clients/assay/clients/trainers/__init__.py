"""Adapters: rewards of Assay in other people's trainers, one module for each trainer.

Each has a page under docs/trainers. What they share stands in `common`.
"""
