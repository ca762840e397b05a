"""The health check `doctor`: it asks name servers and brokers, and says what is wrong and what to do."""
