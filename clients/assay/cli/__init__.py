"""The `assay` command. The extra installs what it needs: `pip install './clients[cli]'`."""
