"""DAPO: draws on until every group of the batch has right and wrong responses."""
