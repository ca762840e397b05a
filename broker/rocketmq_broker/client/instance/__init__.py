"""The parts that all clients share: name servers, routes, heartbeats and requests to brokers."""
