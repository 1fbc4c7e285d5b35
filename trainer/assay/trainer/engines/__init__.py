"""Engines of generation: transformers, its continuous batching, vLLM; a seed for each response."""
