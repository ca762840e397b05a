"""Compares each service's pages and OpenAPI document with the service's actual routes and settings."""

import json
import re
from html import unescape
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
import schemathesis
import urllib3  # noqa: F401 - imported here because it looks for IPv6 by opening a socket, and schemathesis imports it late
from flask import Flask
from flask.testing import FlaskClient

import credit_service.entrypoints.http as credits
import inventory_service.entrypoints.http as inventory
import order_service.entrypoints.http as orders
from rocketmq_broker.world import World

PAGES = {"/", "/docs", "/docs/try.js", "/openapi.json", "/static/{filename}"}
"""What the document need not describe."""


@pytest.fixture(params=[orders, credits, inventory], ids=lambda module: module.__name__.partition(".")[0])
def client(request: pytest.FixtureRequest) -> FlaskClient:
    module: ModuleType = request.param
    # What the application works on is never asked here.
    app: Flask = module.create_app(*[MagicMock()] * (module.create_app.__code__.co_argcount - 1), World())
    return app.test_client()


@pytest.fixture
def document(client: FlaskClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json
    return found


def test_the_document_has_each_route_and_each_method_of_the_service(client: FlaskClient, document: dict[str, Any]) -> None:
    routes = {
        (re.sub(r"<(?:path:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in client.application.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert described == {(path, method) for path, method in routes if path not in PAGES}


def test_the_document_is_openapi_3_1_whose_references_lead_somewhere(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    references = re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(document))
    assert set(references) <= document["components"]["schemas"].keys()
    assert "ProblemBody" in references
    schemathesis.openapi.from_dict(document).validate()


def test_each_operation_has_a_summary_an_id_and_a_problem_for_callers_who_may_not(document: dict[str, Any]) -> None:
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert all(operation["summary"] and operation["responses"]["421"] for operation in operations)
    assert len({operation["operationId"] for operation in operations}) == len(operations)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_shows_each_path_and_brings_nothing_from_elsewhere(
    client: FlaskClient, document: dict[str, Any], path: str
) -> None:
    page = client.get(path)
    assert (page.status_code, page.content_type) == (200, "text/html; charset=utf-8")
    assert [shown for shown in document["paths"] if f"<code>{shown}</code>" not in page.text] == []
    assert "http://" not in page.text
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert re.findall(r"<script[^>]*>", page.text) == (['<script src="/docs/try.js">'] if path == "/docs" else [])
    assert ("script-src 'self'" in policy) == ("<script" in page.text)


def test_the_script_of_the_docs_is_served_as_one(client: FlaskClient) -> None:
    script = client.get("/docs/try.js")
    assert (script.status_code, script.content_type) == (200, "text/javascript; charset=utf-8")
    assert script.headers["X-Content-Type-Options"] == "nosniff"


def test_the_docs_offer_each_request_with_its_fields_and_a_body_that_the_service_takes(
    client: FlaskClient, document: dict[str, Any]
) -> None:
    page = client.get("/docs").text
    routes = client.application.extensions["api_description"].routes.items()
    body_of = {re.sub(r"<(?:path:)?(\w+)>", r"{\1}", name): described.body for name, described in routes}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _, opening, form = page.partition(f'<form data-method="{method.upper()}" data-path="{path}" hidden>')
            form = form.partition("</form>")[0]
            assert opening
            assert re.findall(r' name="([^"]+)" data-in="([^"]+)"', form) == [
                (parameter["name"], parameter["in"]) for parameter in operation["parameters"]
            ]
            body = re.search("<textarea[^>]*>([^<]*)</textarea>", form)
            model = body_of[f"{method.upper()} {path}"]
            assert (body is None) == (model is None)
            if body is not None and model is not None:
                model.model_validate_json(unescape(body[1]))


def test_each_link_within_the_pages_leads_somewhere(client: FlaskClient) -> None:
    pages = {path: client.get(path).text for path in ("/", "/docs")}
    for here, text in pages.items():
        for target in re.findall(r'href="([^"]+)"', text):
            path, _, anchor = target.partition("#")
            page = pages.get(path or here)
            assert page is not None or path in ("/openapi.json", "/healthz")
            assert not anchor or f'id="{anchor}"' in (page or "")


def test_each_problem_of_the_service_is_explained_where_its_type_leads(client: FlaskClient) -> None:
    answer = client.get("/", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json["type"]) == (421, "about:blank")
    assert 'id="database-unavailable"' in client.get("/docs").text
