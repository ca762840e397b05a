"""The handling of messages that cannot be processed: retry during an outage, dead letters, and failpoints of demos."""
