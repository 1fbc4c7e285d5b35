"""The process pool: runs each job in a worker process that can be killed; one outcome each.

    pool.py         the policy: fair queue, worker slots, hand-ahead, retries, draining
    jobs.py         a job, its end, and the service's codec
    places.py       where workers run: on this machine, or in a place that a plug-in brings
    forked.py       workers that one fork server forks
    link.py         one worker as the pool sees it; workers that are child processes
    fork_server.py  the process that loads once and forks
    worker.py       a forked worker: one job at a time, under limits
    frames.py       the wire between the pool and a worker

A module imports those below it. Workers load `frames`, `worker` and `fork_server`, without gRPC.
"""
