"""`python -m credit_service.worker`: works on credits until a signal; with `--check` it only asks whether that worker lives."""

import sys

from rocketmq_broker.told_to_stop import end_at_once_when_told

if "--check" in sys.argv[1:]:
    # This import avoids Celery and the database, which take longer to import than a health check may.
    from credit_service.worker.check import main
else:
    end_at_once_when_told()
    from credit_service.worker.process import main

sys.exit(main())
