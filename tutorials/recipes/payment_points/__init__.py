"""A recipe: a payment in one database and its credit points in another, with Django and its ORM."""
