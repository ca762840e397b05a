"""The language of subscriptions by properties, SQL92 (RocketMQ's module filter): text in, a filter on encoded properties out.

    a > 10 AND a <= 100 OR region IN ('north', 'south') AND paid IS NOT NULL

Properties of a message are strings. Most comparisons convert them to the type of the other side: see `conversion`. A condition
that is neither true nor false is unknown (None): a missing property is neither equal nor unequal to anything. A filter matches a
message if its condition is true.
"""

from rocketmq_broker.filter.errors import FilterError, IllegalExpression
from rocketmq_broker.filter.sql_filter import LONGEST, SqlFilter, compile_sql

__all__ = ["LONGEST", "FilterError", "IllegalExpression", "SqlFilter", "compile_sql"]
