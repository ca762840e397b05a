"""What the credit service does with a batch of messages, in terms of its rules and of a port to whoever writes credits."""
