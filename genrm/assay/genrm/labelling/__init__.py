"""Labels that models make: lines of programs (arXiv 2410.17621), critiques (arXiv 2512.03244)."""
