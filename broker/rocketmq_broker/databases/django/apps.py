"""The configuration of the Django app `rocketmq_broker.databases.django`."""

from django.apps import AppConfig


class RocketmqConfig(AppConfig):
    """The Django app with the tables of transactions and consumed messages. `manage.py migrate` creates the tables."""

    name = "rocketmq_broker.databases.django"
    label = "rocketmq"
    verbose_name = "RocketMQ"
    default_auto_field = "django.db.models.BigAutoField"
