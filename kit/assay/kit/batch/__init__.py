"""The batch service: items in, one judgement or fault for each out, by calls and by streams.

Results come in the order of the items (in a stream, as they are ready). A refused call has judged
nothing. Shortly before the deadline, what is unfinished becomes a fault and what is finished is
returned. Nothing goes on for a call that is gone.

    service      a call and a stream, from the request to the answer
    servicer     the methods of a gRPC service, as a table
    stream       how one stream flows
    dispatcher   runs pending items: here, in a pool, or elsewhere
    coroutines   a pool whose jobs are coroutines
    spreading    the quick work of a large batch, spread over idle workers
    sharing      equal items share an execution, and its judgement afterwards
    answers      results into an answer of bounded size
    items        a pending item; a pool and its jobs
    requests     when a request as a whole is refused, and when to answer

A service brings an `ItemHandler`, which runs items and writes outcomes, and for each method a
function that makes an item of a message.
"""
