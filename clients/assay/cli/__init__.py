"""The `assay` command, with the extra `cli`: `pip install './clients[cli]'`."""
