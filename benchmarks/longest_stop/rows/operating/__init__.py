"""What operators ask and do."""
