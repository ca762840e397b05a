"""A service's database: its URL, opening, migration and use, and its failures."""
