"""Serves the application on 127.0.0.1 until Ctrl-C."""

import os
from tempfile import TemporaryDirectory

import uvicorn

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.debit_ships.application import create_app

with until_interrupted(), TemporaryDirectory() as folder:
    port = int(os.environ.get("PORT", "8000"))
    print(f"http://127.0.0.1:{port}/docs has a form for each request: open an account, buy, and look for the shipment")
    uvicorn.run(create_app(folder), port=port, log_level="warning")
