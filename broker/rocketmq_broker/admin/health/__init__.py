"""The health check `doctor`: examines name servers and brokers, and reports problems and their solutions."""
