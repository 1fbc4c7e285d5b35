"""What the clients of every service are made of; `assay.clients` gives its public names.

messages   between small frozen values and the contract's messages, by descriptors
channel    one channel to a service: `call` and `stream`, over gRPC or in this process
failures   what a failed call of gRPC means, in one line
retry      when a call is tried again
window     how many calls are in flight: a pure controller, by what the server says and by latency
batching   how items become calls: split at limits, gathered from concurrent callers
client     the life of a client, and batches in which every item gets one outcome
streaming  items in as they arise, outcomes out as they are ready
portal     the same client without `await`: a loop in a thread, safe to fork
"""
