"""Reads database tables with ADBC, whatever values their columns contain."""
