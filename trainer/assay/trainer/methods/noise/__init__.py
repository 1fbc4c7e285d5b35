"""Rewards of a verifier that errs: corrected by its rates, or by appeals."""
