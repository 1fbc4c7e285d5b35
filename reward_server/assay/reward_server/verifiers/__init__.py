"""The rule-based verifiers. Pure: no network, clock, environment or processes."""
