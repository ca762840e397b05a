"""The conversion between messages of the API and of the broker."""
