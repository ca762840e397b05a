"""Django models of the three tables, with the same names and columns as in `databases.sqlalchemy`."""

from django.db import models
from django.db.models.functions import Now

from rocketmq_broker.databases import MAX_CHARACTERS


class TransactionOutcome(models.Model):
    """The state of a local transaction (`rocketmq_broker.databases.LocalOutcome`)."""

    transaction_id = models.CharField(primary_key=True, max_length=64)
    state = models.CharField(max_length=16)
    written_at = models.DateTimeField(db_default=Now())

    class Meta:
        """Sets the table's name."""

        db_table = "rocketmq_transactions"


class ConsumedMessage(models.Model):
    """A message that a consumer has consumed."""

    consumer = models.CharField(max_length=MAX_CHARACTERS)
    message_key = models.CharField(max_length=MAX_CHARACTERS)
    written_at = models.DateTimeField(db_default=Now())

    class Meta:
        """Sets the table's name and its unique constraint."""

        db_table = "rocketmq_consumed"
        constraints = [models.UniqueConstraint(fields=["consumer", "message_key"], name="uq_rocketmq_consumed")]


class WaitingMessage(models.Model):
    """A message of an `Inbox`."""

    consumer = models.CharField(max_length=MAX_CHARACTERS)
    message_key = models.CharField(max_length=MAX_CHARACTERS)
    topic = models.CharField(max_length=MAX_CHARACTERS)
    body = models.BinaryField()
    properties = models.TextField()
    status = models.CharField(max_length=16)
    received_at_ms = models.BigIntegerField()
    next_try_at_ms = models.BigIntegerField()
    attempts = models.IntegerField()
    failed_at_ms = models.BigIntegerField(null=True)
    last_error = models.TextField(null=True)

    class Meta:
        """Sets the table's name, its unique constraint and its index."""

        db_table = "rocketmq_inbox"
        constraints = [models.UniqueConstraint(fields=["consumer", "message_key"], name="uq_rocketmq_inbox")]
        indexes = [models.Index(fields=["consumer", "status", "next_try_at_ms"], name="ix_rocketmq_inbox_due")]
