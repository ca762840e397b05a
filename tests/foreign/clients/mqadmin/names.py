"""Topic, groups and broker of the scenario."""

TOPIC = "ScriptedTopic"
GROUP = "scripted_consumers"
PRODUCERS = "scripted_producers"
BROKER = "broker-a"
