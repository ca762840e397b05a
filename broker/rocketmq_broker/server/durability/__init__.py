"""The durability of messages, and the answers that wait for it."""
