"""How clients come in: the port, TLS, sessions, accounts."""
