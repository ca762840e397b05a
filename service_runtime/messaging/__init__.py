"""The broker's client behind a synchronous facade: a consumer in a thread, and a sender."""
