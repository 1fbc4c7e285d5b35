"""Who generates: transformers' generate and continuous batching, vLLM; a seed a response."""
