"""How Spark is started, what it is sent, and how far it is."""
