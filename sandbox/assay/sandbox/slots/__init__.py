"""Slots: one warden process each, fed from one fair queue by the front process.

`frames` is what travels between the two, `link` the front's end of one warden, `pool` the policy.
"""
