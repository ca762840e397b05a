"""The HTTP views of payments and points.

The producer starts at the first request, so that it runs in the process that serves requests and not in its parent.
"""

import json
from functools import cache

from django.http import HttpRequest, JsonResponse
from django.urls import path

from rocketmq_broker.client import EventLoopThread, LocalTransactionState, TransactionProducer
from tutorials.recipes.payment_points.models import Points
from tutorials.recipes.payment_points.paying import PaymentListener, message_of

STATUS = {LocalTransactionState.COMMIT_MESSAGE: 201, LocalTransactionState.UNKNOWN: 202}


@cache
def running() -> tuple[EventLoopThread, TransactionProducer]:
    """Returns the thread and the producer of this process. The first call starts them, and the process's exit ends them."""
    loop = EventLoopThread()
    loop.start()
    return loop, loop.enter(TransactionProducer("payments", PaymentListener()))


def payment(request: HttpRequest, payment_id: str) -> JsonResponse:
    """Handles PUT: stores the payment. Responds with 202 if the outcome is unknown and a check-back will settle it."""
    paid = {"payment_id": payment_id, **json.loads(request.body)}
    loop, producer = running()
    sent = loop.run(producer.send_message_in_transaction(message_of(paid), paid))
    return JsonResponse(paid, status=STATUS[sent.local_transaction_state])


def points(request: HttpRequest, payment_id: str) -> JsonResponse:
    """Handles GET: returns the points of a payment."""
    found = Points.objects.using("points").filter(payment_id=payment_id).values("customer", "points").first()
    return JsonResponse(found or {}, status=200 if found else 404)


urlpatterns = [path("payments/<payment_id>", payment), path("points/<payment_id>", points)]
