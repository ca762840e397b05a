"""A coupon for an order that is paid later: Flask, SQLModel and gunicorn, and Celery on the consumer's side."""
