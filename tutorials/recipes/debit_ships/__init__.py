"""A recipe: a debit in one database causes a shipment in another, with FastAPI and async SQLAlchemy."""
