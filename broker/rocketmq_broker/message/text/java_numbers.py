"""Types for Java's int and long. msgspec checks that decoded values are in range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec

if TYPE_CHECKING:
    Int32: TypeAlias = int
    Int64: TypeAlias = int
else:
    # msgspec accepts "145.0" and "1e2" as ints, but RocketMQ's Long.parseLong refuses them. With float in the union, msgspec
    # converts such a text to a float, and no float satisfies these conditions.
    _NO_FLOAT = Annotated[float, msgspec.Meta(gt=1.0, lt=0.0)]
    Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | _NO_FLOAT
    Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | _NO_FLOAT
