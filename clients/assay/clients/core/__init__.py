"""The parts of which every client is made; `assay.clients` has their public names.

messages   frozen dataclasses to the contract's messages and back, by descriptors
channel    one channel to a service: `call` and `stream`, over gRPC or in this process
failures   a failed gRPC call as one line
retry      when a call is tried again
window     how many calls are in flight: a pure controller
batching   how items become calls: split at limits, gathered from concurrent callers
client     the life of a client, and batches in which every item gets one outcome
streaming  items in as they arise, outcomes out as they are ready
portal     the same client without `await`: a loop in a thread, safe to fork
"""
