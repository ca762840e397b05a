"""Clients that come, say who they are, and go."""
