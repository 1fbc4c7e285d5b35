"""An environment of verifiers that is one of ours: what a user writes, whole."""

from assay.environments.faces.verifiers import EpisodesEnv, EpisodesTaskset

__all__ = ["EpisodesEnv", "EpisodesTaskset"]
