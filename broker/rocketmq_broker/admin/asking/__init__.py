"""The requests to brokers, and their answers as people read them."""
