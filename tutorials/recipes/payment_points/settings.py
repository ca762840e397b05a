"""Django's settings, with one database for payments and another for points."""

import os

FOLDER = os.environ.get("POINTS_FOLDER", ".")
SECRET_KEY = os.environ.get("SECRET_KEY", "only for this recipe on 127.0.0.1")
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
ROOT_URLCONF = "tutorials.recipes.payment_points.views"
INSTALLED_APPS = ["rocketmq_broker.databases.django", "tutorials.recipes.payment_points"]
DATABASES = {
    alias: {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{FOLDER}/{name}.db"}
    for alias, name in (("default", "payments"), ("points", "points"))
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
