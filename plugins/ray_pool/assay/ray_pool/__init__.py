"""Workers of Assay's services on a Ray cluster.

    place    what `--pool ray` finds by its entry point
    workers  a pool's workers and links on a cluster; the actor that hosts a worker
    cluster  what is used of Ray

A module imports those below it. `cluster.connect` imports Ray.
"""
