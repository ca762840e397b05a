"""What all clients of a process share: name servers, routes, heartbeats, calls to brokers."""
