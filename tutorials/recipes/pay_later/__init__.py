"""A recipe: a coupon for an order that is paid later, with Flask, SQLModel and gunicorn, and Celery for the consumer."""
