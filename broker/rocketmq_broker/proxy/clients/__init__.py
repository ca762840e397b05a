"""Clients' settings, heartbeats and routes."""
