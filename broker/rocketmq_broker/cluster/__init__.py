"""Brokers of one machine as a cluster: a name server and several brokers, each in its own process, under one supervisor."""

from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.folder import refuse_a_single_broker
from rocketmq_broker.cluster.leaving import DrainPace
from rocketmq_broker.cluster.supervisor import Supervision, supervise

__all__ = ["ClusterMistake", "DrainPace", "Supervision", "refuse_a_single_broker", "supervise"]
