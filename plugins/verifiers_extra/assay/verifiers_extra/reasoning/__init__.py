"""Verifiers of reasoning: chains of facts, plans, sub-questions, and questions that are made."""
