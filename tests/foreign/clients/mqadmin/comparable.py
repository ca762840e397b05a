"""Removes the values in mqadmin's output that differ between two brokers, such as addresses, times, ids and rates."""

import re

from tests.foreign.clients.mqadmin.scenario import Place

DIFFERENT = {
    "updateBrokerConfig": "ours refuses what it cannot change while it runs; Apache's says yes to everything",
    "getBrokerConfig": "ours has fewer settings: see SETTINGS_OF_OUR_OWN",
    "getNamesrvConfig": "ours has fewer settings",
}
SETTINGS_OF_OUR_OWN = re.compile(
    r"bindAddress|namesrvListenPort|metrics.*|tls\..*|rocketmq\.acl\..*|diskSpace.*Ratio|serverMax.*|max(Topic|SubscriptionGroup)Num"
    r"|transactionCheckAnswerTimeOut|grpcServerPort|busyPollMicros"
)
"""Those of metrics and gRPC are RocketMQ 5's; those of TLS, accounts and the disk's levels are settings of RocketMQ's JVM.

RocketMQ asks once in each transactionCheckInterval, answered or not. It has no bounds of connections, of the bytes they hold, of
topics and of groups; and its threads sleep at once.
"""
SETTINGS_THAT_DIFFER = {
    "namesrvAddr",
    "listenPort",
    "rocketmqHome",
    "storePathRootDir",
    "storePathCommitLog",
    "mappedFileSizeCommitLog",
    "cleanFileForciblyEnable",  # see docs/decisions/0015
}

_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}@\d+#\w+"), "CLIENT"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}:\d+"), "ADDRESS"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d(?:[,:]\d{3})?"), "TIME"),
    (re.compile(r"\b1\d{12}\b"), "MILLISECONDS"),
    (re.compile(r'(?<="counter": )\d+'), "CHANGES"),
    (re.compile(r'(?<=Tps": )[\d.E-]+'), "RATE"),
    (re.compile(r'(?<=DiskRatio": ")[\d.]+'), "RATIO"),
    (re.compile(r"\b[0-9A-F]{32,}\b"), "ID"),
    (re.compile(r"(?<=TPS: )\d+\.\d\d"), "RATE"),
    (re.compile(r"\d+\.\d\d(?=\(\d+,\d+ms\))"), "RATE"),
    (re.compile(r"(?<=spentTimeMills=)\d+"), "NUMBER"),
    (re.compile(r"(?<= )\d+\.\d+ +\d\.\d{4}$", re.MULTILINE), "HOURS SPACE"),
    (re.compile(r"(?<=commitLogDiskRatio_).+"), "PATH AND RATIO"),
    (re.compile(r"(?<=OK, )\d+$", re.MULTILINE), "TOPICS"),
    # Ours has the half topic from the start, Apache's after the first check.
    (re.compile(r"^.*\bRMQ_SYS_TRANS_HALF_TOPIC\b.*\n?", re.MULTILINE), ""),
    (re.compile(r" {2,}"), "  "),
    (re.compile(r" +$", re.MULTILINE), ""),
)
_EXPORT_PATH = re.compile(r"(?<=export )/\S+/exports")
_RATES = re.compile(r"\b\d+\.\d\d\b")
_VARYING_FIGURE = re.compile(
    r"(?P<name>\w*(?:Tps|Capacity|Ratio|TimeMax|TimesTotal|DistributeTime|Latency\d+)|runtime|commitLogDirCapacity) *: .*"
    r"|(?P<blank>\w+Tps) *:$"
)
"""Measured, or about thread pools, which ours has not."""
_UNORDERED = {"topicList", "statsAll", "brokerConsumeStats", "producer"}
"""Commands that print a hash set as it comes."""
_OF_MQADMIN = re.compile(r"^.*\bCLIENT_INNER_PRODUCER\b.*\n?", re.MULTILINE)
"""Producers of mqadmin's own: one may linger after its command, or not have come yet."""


def comparable(command: str, printed: str, place: Place) -> str:
    """Returns the output of the command, without values that depend on the broker."""
    text = _EXPORT_PATH.sub("EXPORTS", printed).replace(place.broker_addr, "BROKER").replace(place.namesrv_addr, "NAMESRV")
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    name = command.split()[0]
    if name == "statsAll":
        text = _RATES.sub("RATE", text)
    if name == "producer":
        text = _OF_MQADMIN.sub("", text)
    if name == "brokerStatus":
        text = "\n".join(_without_varying_figure(line) for line in text.splitlines())
    if name == "queryMsgById":
        text = "\nMessageTrack ".join(sorted(text.split("MessageTrack ")))
    if name in _UNORDERED:
        text = "\n".join(sorted(text.splitlines()))
    return text


def settings(printed: str) -> dict[str, str]:
    """Returns the settings in the output of getBrokerConfig or getNamesrvConfig."""
    pairs = [line.partition("=") for line in printed.splitlines() if re.match(r"\w+ +=", line)]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _without_varying_figure(line: str) -> str:
    found = _VARYING_FIGURE.search(line)
    return f"{line[: found.start()]}{found['name'] or found['blank']} : FIGURE" if found else line
