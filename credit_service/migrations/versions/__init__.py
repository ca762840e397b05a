"""The migrations, one module each."""
