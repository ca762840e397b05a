"""Push consumers, which pass messages to listeners, concurrently or in order."""
