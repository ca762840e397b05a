"""The processing of messages. It uses the domain's rules, and ports to the database and the broker."""
