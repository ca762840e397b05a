"""The home page, /docs with a form for each request, and /openapi.json for tools.

The pages load nothing from other sites. Only /docs has a script.
"""

from functools import cache
from pathlib import Path
from typing import Final

from flask import Blueprint, Flask, Response, jsonify, render_template, send_file

from service_runtime.http.api_document import ApiDescription, openapi_document
from service_runtime.http.health import NOT_READY
from service_runtime.http.problems import anchor_of

_ONLY_OWN_STYLE: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_OWN_SCRIPT_TOO: Final = f"{_ONLY_OWN_STYLE}; script-src 'self'; connect-src 'self'"
_SCRIPT: Final = Path(__file__).parent / "pages" / "try.js"


def register_documents(app: Flask, description: ApiDescription) -> None:
    """Adds the pages. The OpenAPI document is generated at the first request."""
    status_of = {problem.title: problem.status for problem in description.problems if problem.has_type}
    titles = sorted({**status_of, NOT_READY: 503}.items())
    problems = [(anchor_of(title), title, status) for title, status in titles]
    document = cache(lambda: openapi_document(app, description))

    def page(name: str, policy: str) -> Response:
        response = Response(
            render_template(name, document=document(), problems=problems), content_type="text/html; charset=utf-8"
        )
        response.headers["Content-Security-Policy"] = policy
        return _not_sniffed(response)

    pages = Blueprint("documents", __name__, template_folder="pages")
    pages.add_url_rule("/", "home", lambda: page("home.html", _ONLY_OWN_STYLE))
    pages.add_url_rule("/docs", "docs", lambda: page("docs.html", _OWN_SCRIPT_TOO))
    pages.add_url_rule("/docs/try.js", "script", lambda: _not_sniffed(send_file(_SCRIPT, mimetype="text/javascript")))
    pages.add_url_rule("/openapi.json", "openapi", lambda: jsonify(document()))
    app.extensions["api_description"] = description
    app.register_blueprint(pages)


def _not_sniffed(response: Response) -> Response:
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
