"""A payment that comes later, and a coupon for it: Flask, SQLModel and gunicorn; Celery on the consuming side."""
