"""Requests to brokers, and their decoded answers."""
