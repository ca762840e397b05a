"""`python -m order_service`: serves orders over HTTP; `python -m order_service migrate` only migrates the database."""

import sys

from order_service.entrypoints.process import main

sys.exit(main())
