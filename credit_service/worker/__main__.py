"""`python -m credit_service.worker`: works on credits until a signal; with `--check` it only asks whether that worker lives."""

import sys

from rocketmq_broker.stop_signals import exit_at_once_on_stop_signals

if "--check" in sys.argv[1:]:
    # This import avoids Celery and the database, which take longer to import than a health check may.
    from credit_service.worker.check import main
else:
    exit_at_once_on_stop_signals()
    from credit_service.worker.process import main

sys.exit(main())
