"""`assay ladder`: the same training with parts switched on or off, over seeds, side by side."""
