"""`python -m credit_service.worker`: works on credits until a signal; with `--check` it only asks whether that worker lives."""

import sys

if "--check" in sys.argv[1:]:
    # Without Celery and the database, whose imports alone take longer than a health check may.
    from credit_service.worker.check import main
else:
    from credit_service.worker.process import main

sys.exit(main())
