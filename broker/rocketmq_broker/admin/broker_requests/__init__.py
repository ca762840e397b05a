"""Requests to brokers, and the decoded responses."""
