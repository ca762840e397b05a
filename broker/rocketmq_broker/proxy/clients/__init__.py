"""What clients say of themselves and ask of the broker: settings, heartbeats, routes."""
