"""The migrations, each in a module."""
