"""Parses the URL of a service's database, and opens, migrates and uses that database."""
