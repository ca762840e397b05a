import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
from flask import Flask

from service_runtime.http_server import HttpServer


def test_a_request_that_runs_is_answered_although_the_server_stops() -> None:
    app, runs, may_end = Flask(__name__), threading.Event(), threading.Event()

    @app.get("/")
    def answer() -> str:
        runs.set()
        may_end.wait(10)
        return "x" * 500_000

    server = HttpServer(app, host="127.0.0.1", port=0, threads=2)
    server.start()
    with ThreadPoolExecutor(2) as threads:
        asked = threads.submit(httpx.get, server.url, timeout=20)
        assert runs.wait(10)
        stopped = threads.submit(server.stop)
        may_end.set()
        assert len(asked.result(20).text) == 500_000
        stopped.result(20)
