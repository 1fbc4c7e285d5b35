"""Who generates: transformers, its continuous batching, vLLM; a seed for each response."""
