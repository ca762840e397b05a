"""`make bench-orders`: orders a second, and the time from POST to credit, beside an outbox with a relay."""
