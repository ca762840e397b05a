"""Topics, subscription groups, and their registration with name servers."""
