"""The handling of messages that cannot be processed now: hold, retry, or give up."""
