"""`python -m order_service`: serves orders over HTTP; `python -m order_service migrate` only migrates the database."""

import sys

from rocketmq_broker.told_to_stop import end_at_once_when_told

end_at_once_when_told()

from order_service.entrypoints.process import SERVICE  # noqa: E402

sys.exit(SERVICE.main())
