"""The small kit that every Assay service and client shares."""
