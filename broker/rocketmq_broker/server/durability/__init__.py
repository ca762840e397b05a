"""When a message is on the disk, and who is told."""
