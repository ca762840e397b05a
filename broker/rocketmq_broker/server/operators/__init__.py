"""What operators ask and set."""
