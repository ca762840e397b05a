"""The maintenance of an open store: checkpoints, expiry of data, the next segment."""
