"""Serves payments on 127.0.0.1:8000 and runs the consumer of points until Ctrl-C."""

import os
from tempfile import TemporaryDirectory

import django
from django.core.management import call_command

from rocketmq_broker.client import ConsumeFromWhere, EventLoopThread, PushConsumer
from rocketmq_broker.stop_signals import until_interrupted

with until_interrupted(), TemporaryDirectory() as folder, EventLoopThread() as loop:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tutorials.recipes.payment_points.settings"
    os.environ.setdefault("POINTS_FOLDER", folder)
    django.setup()
    for database in ("default", "points"):
        call_command("migrate", run_syncdb=True, database=database, verbosity=0)
    from tutorials.recipes.payment_points.paying import TOPIC, give_points

    consumer = PushConsumer("points", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.consumes(TOPIC)(give_points)
    loop.enter(consumer)
    call_command("runserver", "127.0.0.1:8000", use_reloader=False)
