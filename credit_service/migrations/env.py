"""Runs the migrations on the connection, and in the transaction, of `service_runtime.database.migration.migrate`."""

from alembic import context

from credit_service.adapters.tables import CreditDatabase

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=CreditDatabase.metadata,
    version_table=context.config.attributes["version_table"],
)
with context.begin_transaction():
    context.run_migrations()
