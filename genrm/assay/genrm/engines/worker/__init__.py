"""The process that runs a model with transformers.

    __main__    loads the model, serves until its parent is gone
    network     one forward pass over rows of tokens
    weights     on a device, quantised where that is asked for
    adapters    of LoRA, over the weights
    kv_cache    the keys and values of those rows
    prefixes    keys and values of token sequences, as a tree
    jobs        requests: which positions to read, what to make of the logits
    reading     which sequences go into the next forward pass
    writing     rows that are being written
    sampling    from logits to the next token
    vocabulary  the bytes of tokens, and which of them a form allows
    guiding     a row that is held to a form
    loop        admits, reads, writes, answers

A crash costs the requests at work only, and computing never holds up the event loop. Why the
batching is ours: docs/adr/0026-the-judges-own-batching.md.
"""
