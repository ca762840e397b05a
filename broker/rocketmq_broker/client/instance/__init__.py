"""The common parts of all clients of a process: name servers, routes, heartbeats, calls to brokers."""
