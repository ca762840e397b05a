"""What keeps an open store in order: checkpoints, room on the disk, the next segment."""
