"""Who generates: transformers' generate, its continuous batching, vLLM; one seed for each response."""
