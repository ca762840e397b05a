"""A service's database: how it is named, opened, migrated and used, and how it fails."""
