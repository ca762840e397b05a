"""The Django models. Each database has both tables and uses one of them."""

from django.db import models


class Payment(models.Model):
    """A payment of a customer, in the database `default`."""

    payment_id = models.CharField(primary_key=True, max_length=36)
    customer = models.CharField(max_length=100)
    euros = models.PositiveIntegerField()


class Points(models.Model):
    """The credit points of a payment, in the database `points`."""

    payment_id = models.CharField(primary_key=True, max_length=36)
    customer = models.CharField(max_length=100)
    points = models.PositiveIntegerField()
