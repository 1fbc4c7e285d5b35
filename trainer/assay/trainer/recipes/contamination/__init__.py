"""`assay contamination`: which rows a model was trained on, by how it answers them."""
