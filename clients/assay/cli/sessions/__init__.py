"""`assay session`: what is typed or piped becomes cells, what comes of them is shown."""
