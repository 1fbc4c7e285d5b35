"""The process pool: jobs in, one outcome each out, run by worker processes that can be killed.

    pool.py         the policy: a fair queue, worker slots, hand-ahead, retries, draining
    jobs.py         a job, what came of it, and the codec that a service gives
    places.py       where workers are: this machine, or a place that a plug-in brings
    forked.py       workers that one fork server forks, in milliseconds
    link.py         one worker as the pool sees it; workers that are child processes
    fork_server.py  the process that loads once and forks
    worker.py       what a forked worker does: one job at a time, under limits
    frames.py       what travels between the pool and a worker

A module imports those below it. `frames`, `worker` and `fork_server` are loaded in workers, and
load no gRPC. Workers on a Ray cluster come with `assay-ray-pool` (`plugins/ray_pool`).
"""
