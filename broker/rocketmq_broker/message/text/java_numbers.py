"""Java's whole numbers, as types that msgspec checks: an int or a long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec

if TYPE_CHECKING:
    Int32: TypeAlias = int
    Int64: TypeAlias = int
else:
    # msgspec would take "145.0" and "1e2" for the numbers 145 and 100, which RocketMQ's Long.parseLong refuses. Where a float is
    # allowed too, msgspec makes a float of such a text, and no float fulfils these conditions.
    _NO_FLOAT = Annotated[float, msgspec.Meta(gt=1.0, lt=0.0)]
    Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | _NO_FLOAT
    Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | _NO_FLOAT
