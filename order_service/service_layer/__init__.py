"""The use cases of the order service. They use the domain's rules, and ports to the database and the broker."""
