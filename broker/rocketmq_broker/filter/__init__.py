"""SQL92 filters of subscriptions (RocketMQ's module filter). Compiles an expression to a filter on encoded properties.

    a > 10 AND a <= 100 OR region IN ('north', 'south') AND paid IS NOT NULL

Properties of a message are strings. Most comparisons convert them to the type of the other operand: see `conversion`. A condition
that is neither true nor false is unknown (None): a missing property is neither equal nor unequal to a value. A filter matches
a message if its condition is true.
"""

from rocketmq_broker.filter.errors import FilterError, IllegalExpression
from rocketmq_broker.filter.sql_filter import MAX_LENGTH, SqlFilter, compile_sql

__all__ = ["MAX_LENGTH", "FilterError", "IllegalExpression", "SqlFilter", "compile_sql"]
