"""Runs `python -m pipelines`."""

import logging

from pipelines.commands.command_line import application
from rocketmq_broker.logs import log_to_stderr

if __name__ == "__main__":
    log_to_stderr(logging.WARNING)
    application(prog_name="python -m pipelines")
