"""The processing of message batches. It uses the domain's rules, and a port to the writer of credits."""
