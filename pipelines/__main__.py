"""Runs `python -m pipelines`."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

import logging
import os

from pipelines.commands.command_line import application
from rocketmq_broker.logs import log_to_stderr
from rocketmq_broker.stop_signals import until_interrupted

if __name__ == "__main__":
    log_to_stderr(logging.WARNING)
    os.umask(0o077)  # findings, breaks, plans, states and logs contain customer data, so only this user may read new files
    with until_interrupted():
        application(prog_name="python -m pipelines")
