"""`python -m credit_service`: consumes orders, and serves credits over HTTP; with `migrate` it only migrates the database."""

import sys

from credit_service.entrypoints.process import main

sys.exit(main())
