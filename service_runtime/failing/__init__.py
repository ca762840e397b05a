"""The handling of messages that cannot be processed now: keep and retry, redeliver later, or give up."""
