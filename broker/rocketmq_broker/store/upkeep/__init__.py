"""The upkeep of an open store: checkpoints, room on the disk, the next segment."""
