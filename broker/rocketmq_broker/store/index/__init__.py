"""The index: where messages with a key lie."""
