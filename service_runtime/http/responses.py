"""Builds JSON responses from pydantic models."""

from flask import Response
from pydantic import BaseModel


def json_response(body: BaseModel, status: int = 200) -> Response:
    """Returns a JSON response with this HTTP status."""
    return Response(body.model_dump_json(), status=status, content_type="application/json")
