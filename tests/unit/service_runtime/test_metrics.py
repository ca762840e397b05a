import time

from flask import Flask

from service_runtime.observing.metrics import new_metrics, serve_metrics


def an_app() -> Flask:
    app = Flask("shop")
    app.add_url_rule("/things/<name>", "thing", lambda name: name)
    app.before_request(lambda: ("away", 503) if app.config.get("IS_AWAY") else None)
    serve_metrics(app, new_metrics(), time.monotonic)
    return app


def scraped(app: Flask) -> str:
    answer = app.test_client().get("/metrics")
    assert answer.content_type.startswith("text/plain")
    return answer.text


def test_requests_are_counted_and_timed_by_route_and_never_by_what_the_caller_wrote() -> None:
    app = an_app()
    for path in ("/things/a", "/things/b", "/nowhere", "/elsewhere"):
        app.test_client().open(path, method="BREW" if path == "/elsewhere" else "GET")
    metrics = scraped(app)
    assert 'http_requests_total{method="GET",route="/things/<name>",status="200"} 2.0' in metrics
    assert 'http_requests_total{method="none",route="none",status="404"} 2.0' in metrics
    assert 'http_request_duration_seconds_count{method="GET",route="/things/<name>"} 2.0' in metrics
    assert "nowhere" not in metrics
    assert "BREW" not in metrics


def test_a_request_that_is_turned_away_is_counted_too() -> None:
    app = an_app()
    app.config["IS_AWAY"] = True
    app.test_client().get("/things/a")
    app.config["IS_AWAY"] = False
    assert 'http_requests_total{method="GET",route="/things/<name>",status="503"} 1.0' in scraped(app)


def test_the_process_itself_is_measured() -> None:
    assert "process_cpu_seconds_total" in scraped(an_app())
