"""The small kit that every Assay service and client shares: faults, limits, serving, health, deadlines, logs."""
