"""The errors of filter expressions."""


class FilterError(Exception):
    """Base class of this package's errors."""


class IllegalExpression(FilterError):
    """Raised if an expression is invalid or too large. The message contains the problem and its position."""


class EvaluationFailed(FilterError):
    """Raised if an expression cannot be applied to a message, for example because a property is not a number as required."""
