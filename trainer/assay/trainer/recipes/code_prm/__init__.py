"""`assay code-prm`: process supervision for code by one command (arXiv 2410.17621)."""
