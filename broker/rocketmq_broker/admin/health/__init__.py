"""The health check `doctor`, which examines name servers and brokers, and reports problems and how to solve them."""
