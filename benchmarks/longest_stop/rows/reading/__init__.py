"""Pulls, views and queries."""
