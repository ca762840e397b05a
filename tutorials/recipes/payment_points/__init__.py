"""A payment and its credit points in another database: Django with its ORM."""
