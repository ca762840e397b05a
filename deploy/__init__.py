"""How the project is set up, built, released and run in containers."""
