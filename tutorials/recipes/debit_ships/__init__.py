"""A debit in one database and a shipment in another: FastAPI with async SQLAlchemy."""
