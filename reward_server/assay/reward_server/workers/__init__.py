"""Worker processes that can be killed: how verifiers with unbounded cost are run.

    pool.py      in the server: hands items to workers, kills at the time-out, replaces the dead
    queue.py     in the server: the bounded queue, fair between calls
    link.py      in the server: one connection to the nursery and to its workers
    nursery.py   a single-threaded process that loads the verifiers once and forks the workers
    worker.py    a worker: takes one item at a time
    frames.py    what travels between the server and a worker: length-prefixed JSON

The server itself is never forked: it holds gRPC's threads. The nursery has none, so its forks are
sound and take milliseconds.
"""
