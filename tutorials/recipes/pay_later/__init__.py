"""A coupon for an order that is paid later: Flask, SQLModel and gunicorn for the shop, and Celery for the consumer."""
