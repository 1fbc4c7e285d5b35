"""The parts of which every client is made; `assay.clients` has their public names.

messages   frozen dataclasses to the contract's messages and back
channel    one channel to a service, over gRPC or in this process
failures   a failed gRPC call as one line
retry      when a call is tried again
window     how many calls are in flight
batching   how items become calls: split at limits, gathered from concurrent callers
client     the life of a client; every item gets one outcome
streaming  items in as they arise, outcomes out as they are ready
portal     the same client without `await`, safe to fork
"""
