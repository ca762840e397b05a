"""What was found, told as tables, as JSON and as text."""
