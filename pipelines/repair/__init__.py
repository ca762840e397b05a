"""Plans repairs after a reconciliation, with evidence, and executes the plans."""
