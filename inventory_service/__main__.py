"""`python -m inventory_service`: ships orders, and serves stock over HTTP; with `migrate` it only migrates the database."""

import sys

from inventory_service.entrypoints.process import main

sys.exit(main())
