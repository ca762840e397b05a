"""Work in steps, done in one go."""

from broker.remoting.dispatcher import Answer, Steps


def finish(steps: Steps) -> Answer:
    """What the work returns: for work so small that it need not be spread over turns of the event loop."""
    try:
        while True:
            next(steps)
    except StopIteration as ended:
        answer: Answer = ended.value
        return answer
