"""What operators see of a push consumer, and what they may ask of it."""
