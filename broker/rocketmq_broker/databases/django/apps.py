"""The Django app: `rocketmq_broker.databases.django` in INSTALLED_APPS."""

from django.apps import AppConfig


class RocketmqConfig(AppConfig):
    """Two tables in the program's database; `manage.py migrate` makes them."""

    name = "rocketmq_broker.databases.django"
    label = "rocketmq"
    verbose_name = "RocketMQ"
    default_auto_field = "django.db.models.BigAutoField"
