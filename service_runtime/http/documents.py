"""The home page, /docs with a form for each request, and /openapi.json for tools.

The pages load nothing from other sites. Only /docs has a script.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

from flask import Blueprint, Flask, Response, current_app, jsonify, render_template, send_file

from service_runtime.http.api_document import ApiDescription, openapi_document
from service_runtime.http.health import NOT_READY
from service_runtime.http.problems import anchor_of

_ONLY_OWN_STYLE: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_OWN_SCRIPT_TOO: Final = f"{_ONLY_OWN_STYLE}; script-src 'self'; connect-src 'self'"
_SCRIPT: Final = Path(__file__).parent / "pages" / "try.js"

documents_api = Blueprint("documents", __name__, template_folder="pages")


def register_documents(app: Flask, description: ApiDescription) -> None:
    """Adds the pages. The OpenAPI document is generated at the first request."""
    status_of = {problem.title: problem.status for problem in description.problems if problem.has_type}
    titles = sorted({**status_of, NOT_READY: 503}.items())
    app.extensions["api_description"] = description
    app.extensions["api_document"] = cache(lambda: openapi_document(app, description))
    app.extensions["api_problems"] = [(anchor_of(title), title, status) for title, status in titles]
    app.register_blueprint(documents_api)


@documents_api.get("/")
def get_home() -> Response:
    """Returns the home page, with links."""
    return _page("home.html", _ONLY_OWN_STYLE)


@documents_api.get("/docs")
def get_docs() -> Response:
    """Returns the API documentation, with a form for each request."""
    return _page("docs.html", _OWN_SCRIPT_TOO)


@documents_api.get("/docs/try.js")
def get_script() -> Response:
    """Returns the script of the forms."""
    return _not_sniffed(send_file(_SCRIPT, mimetype="text/javascript"))


@documents_api.get("/openapi.json")
def get_openapi() -> Response:
    """Returns the OpenAPI 3.1 document."""
    return jsonify(current_app.extensions["api_document"]())


def _page(name: str, policy: str) -> Response:
    document: dict[str, Any] = current_app.extensions["api_document"]()
    text = render_template(name, document=document, problems=current_app.extensions["api_problems"])
    response = Response(text, content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = policy
    return _not_sniffed(response)


def _not_sniffed(response: Response) -> Response:
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
