"""Measures orders per second and the time from POST to credit: `make bench-orders`.

The measurements compare transactional messages with an outbox and a relay.
"""
