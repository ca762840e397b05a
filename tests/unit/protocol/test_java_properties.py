import pytest

from rocketmq_broker.protocol.java_properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("listenPort=10911", {"listenPort": "10911"}),
        ("  listenPort = 10911", {"listenPort": "10911"}),
        ("listenPort:10911", {"listenPort": "10911"}),
        ("listenPort 10911", {"listenPort": "10911"}),
        ("# listenPort=1\n! listenPort=2\n\n", {}),
        ("messageDelayLevel=1s 5s 10s", {"messageDelayLevel": "1s 5s 10s"}),
        ("namesrvAddr=a:1;\\\n    b:2", {"namesrvAddr": "a:1;b:2"}),
        ("path=C\\:\\\\store", {"path": "C:\\store"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("name=caf\\u00e9", {"name": "café"}),
        ("empty=", {"empty": ""}),
        ("lonely", {"lonely": ""}),
        ("port=1\nport=2", {"port": "2"}),
        ("brokerName=a\r\nlistenPort=1\r\n", {"brokerName": "a", "listenPort": "1"}),
    ],
)
def test_a_properties_file_reads_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected
