"""The credit service's work on a batch of messages, based on its rules and on a port to the writer of credits."""
