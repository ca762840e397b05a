"""Clients' connections: the port, TLS, HTTP/2, accounts, sessions."""
