"""The process that runs a model with transformers, and nothing else.

    __main__    starts: loads the model, says so, serves until its parent is gone
    frames      what travels between the processes
    network     the model: weights on a device, one forward pass over rows of tokens
    kv_cache    the keys and values of those rows, in one tensor
    prefixes    keys and values of token sequences that were read, as a tree
    jobs        requests in the worker: which positions to read, what to make of the logits
    reading     which sequences go into the next forward pass
    writing     rows that are being written, one token at a time
    sampling    from logits to the next token
    loop        admits, reads, writes, answers

It is a process of its own so that a crash of native code, or the kernel's memory killer, costs the
requests at work and not the service; and so that computing never holds up the event loop.

Why the batching is ours, and not transformers': docs/adr/0026-the-judges-own-batching.md, by
`python -m bench judge-batching`.
"""
