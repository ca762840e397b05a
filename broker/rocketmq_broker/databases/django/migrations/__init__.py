"""The migrations of the Django app."""
