"""Clients that connect, register, and disconnect."""
