"""Runs the migrations with the connection and in the transaction of `service_runtime.database.migration.migrate`."""

from alembic import context

from order_service.adapters.tables import OrderDatabase

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=OrderDatabase.metadata,
    version_table=context.config.attributes["version_table"],
)
with context.begin_transaction():
    context.run_migrations()
