"""The settings of the services."""
