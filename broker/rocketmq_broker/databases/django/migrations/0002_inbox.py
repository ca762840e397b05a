"""The migration that creates the table of the inbox."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Creates `rocketmq_inbox`."""

    dependencies = [("rocketmq", "0001_tables")]

    operations = [
        migrations.CreateModel(
            name="WaitingMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("consumer", models.CharField(max_length=255)),
                ("message_key", models.CharField(max_length=255)),
                ("topic", models.CharField(max_length=255)),
                ("body", models.BinaryField()),
                ("properties", models.TextField()),
                ("status", models.CharField(max_length=16)),
                ("received_at_ms", models.BigIntegerField()),
                ("next_try_at_ms", models.BigIntegerField()),
                ("attempts", models.IntegerField()),
                ("failed_at_ms", models.BigIntegerField(null=True)),
                ("last_error", models.TextField(null=True)),
            ],
            options={
                "db_table": "rocketmq_inbox",
                "indexes": [models.Index(fields=["consumer", "status", "next_try_at_ms"], name="ix_rocketmq_inbox_due")],
                "constraints": [models.UniqueConstraint(fields=("consumer", "message_key"), name="uq_rocketmq_inbox")],
            },
        ),
    ]
