"""The names of the scenario's topic, groups and broker."""

TOPIC = "ScriptedTopic"
GROUP = "scripted_consumers"
PRODUCERS = "scripted_producers"
BROKER = "broker-a"
