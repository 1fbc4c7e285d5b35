"""What `assay environments` shows and plays."""
