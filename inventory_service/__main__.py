"""`python -m inventory_service`: ships orders, and serves stock over HTTP; with `migrate` it only migrates the database."""

import sys

from rocketmq_broker.told_to_stop import end_at_once_when_told

end_at_once_when_told()

from inventory_service.entrypoints.process import SERVICE  # noqa: E402

sys.exit(SERVICE.main())
