"""Half messages, their outcomes, check-back and recovery."""
