"""Operators' requests to a push consumer."""
