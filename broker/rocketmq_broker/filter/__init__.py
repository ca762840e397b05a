"""The language of subscriptions by properties, SQL92 (RocketMQ's module filter): text in, a filter on encoded properties out.

    a > 10 AND a <= 100 OR region IN ('north', 'south') AND paid IS NOT NULL

The properties of a message are strings, and most comparisons wait to see what they are compared with: see `conversion`. What is
neither true nor false is unknown (None): a property that is not there is neither equal to anything nor unequal. A message is
wanted if its condition is true.
"""

from rocketmq_broker.filter.errors import FilterError, IllegalExpression
from rocketmq_broker.filter.sql_filter import LONGEST, SqlFilter, compile_sql

__all__ = ["LONGEST", "FilterError", "IllegalExpression", "SqlFilter", "compile_sql"]
