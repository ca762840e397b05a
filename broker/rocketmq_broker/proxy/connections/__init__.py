"""The connections of clients, with TLS, HTTP/2, accounts and sessions."""
