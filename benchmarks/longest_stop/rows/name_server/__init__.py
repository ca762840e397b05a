"""Registrations at the name server."""
