"""`python -m order_service`: serves orders over HTTP."""

import sys

from order_service.entrypoints.process import main

sys.exit(main())
