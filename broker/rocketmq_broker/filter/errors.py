"""The errors of an expression."""


class FilterError(Exception):
    """Base of this package's errors."""


class IllegalExpression(FilterError):
    """A text that is no expression, or one that is too large; the message names the problem and its place."""


class EvaluationFailed(FilterError):
    """An expression that cannot be applied to a message: it needs a number where the property is none."""
