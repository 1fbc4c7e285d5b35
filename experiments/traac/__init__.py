"""TRAAC's length reward, calibrated by difficulty."""
