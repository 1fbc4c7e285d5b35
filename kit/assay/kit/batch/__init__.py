"""The batch service: items in, one judgement or fault for each out, by calls and by streams.

What it promises, whatever is judged: judgements and faults together equal the items, in the order
in which they were sent (of a stream, in that in which they are ready); a call that is refused has
judged nothing; what is not finished shortly before the deadline is a fault, and what is finished is
returned; nothing goes on for a call that is gone.

    service      a call and a stream, from the request to the answer
    servicer     the methods of a gRPC service, as a table
    stream       how one stream flows
    dispatcher   runs pending items: here, in a pool, or elsewhere; closes what is left
    coroutines   a pool whose jobs are coroutines
    sharing      equal items share an execution, and its judgement afterwards
    answers      results into an answer, which has bounds
    items        a pending item; a pool and its jobs, as they are seen here
    requests     when a request as a whole is refused, and when to answer

A service brings an `ItemHandler`: who runs an item, and how its outcome is written; and for each
method how a message becomes an item.
"""
