"""Topics, subscription groups, and what name servers are told of them."""
