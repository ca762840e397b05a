"""`python -m credit_service`: consumes orders, and serves credits over HTTP."""

import sys

from credit_service.entrypoints.process import main

sys.exit(main())
