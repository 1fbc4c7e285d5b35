"""Labels for lines of programs: process supervision for code (arXiv 2410.17621)."""
