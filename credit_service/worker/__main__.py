"""`python -m credit_service.worker`: credits messages until a signal arrives.

With `--check`, only checks whether the running worker takes tasks.
"""

import sys

from rocketmq_broker.stop_signals import exit_at_once_on_stop_signals

if "--check" in sys.argv[1:]:
    # With --check, this import avoids Celery and the database, whose import takes longer than a health check may.
    from credit_service.worker.check import main
else:
    exit_at_once_on_stop_signals()
    from credit_service.worker.process import main

sys.exit(main())
