"""The migration that creates the tables of transactions and consumed messages."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    """Creates `rocketmq_transactions` and `rocketmq_consumed`."""

    initial = True

    dependencies: list[tuple[str, str]] = []

    operations = [
        migrations.CreateModel(
            name="TransactionOutcome",
            fields=[
                ("transaction_id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("state", models.CharField(max_length=16)),
                ("written_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "rocketmq_transactions",
            },
        ),
        migrations.CreateModel(
            name="ConsumedMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("consumer", models.CharField(max_length=255)),
                ("message_key", models.CharField(max_length=255)),
                ("written_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "rocketmq_consumed",
                "constraints": [models.UniqueConstraint(fields=("consumer", "message_key"), name="uq_rocketmq_consumed")],
            },
        ),
    ]
