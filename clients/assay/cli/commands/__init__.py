"""The subcommands of `assay` that come with the client.

Others join through the entry-point group `assay.commands`.
"""
