"""The configuration of the Django app `rocketmq_broker.databases.django`."""

from django.apps import AppConfig


class RocketmqConfig(AppConfig):
    """The Django app that contains the tables in `models`. `manage.py migrate` creates them."""

    name = "rocketmq_broker.databases.django"
    label = "rocketmq"
    verbose_name = "RocketMQ"
    default_auto_field = "django.db.models.BigAutoField"
