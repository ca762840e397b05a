"""What can go wrong with an expression."""


class FilterError(Exception):
    """Base of this package's errors."""


class IllegalExpression(FilterError):
    """The text is no expression, or one that is too large; the message says what is wrong and where."""


class EvaluationFailed(FilterError):
    """An expression cannot be applied to a message: a property is no number, where one is needed."""
