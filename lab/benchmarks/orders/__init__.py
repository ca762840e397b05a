"""Measures orders per second and the time from POST to credit, compared with an outbox and a relay: `make bench-orders`."""
