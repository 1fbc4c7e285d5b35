"""Sessions: interpreters that live between calls, are checkpointed, rolled back and forked.

service    the methods of session.proto: ids, tenants, leases, admission, turns on the machine
host       a trusted process of its own: holds the living sessions, knows no tenant and no lease
zygote     `assay.sandbox.zygote`: what runs inside the walls, the keeper of each family in it
"""
