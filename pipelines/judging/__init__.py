"""The judgement of the three witnesses on each order: events, one history for each, and its class and cause by rules."""
