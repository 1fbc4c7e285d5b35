"""The subcommands of the client; others join by the entry-point group `assay.commands`."""
