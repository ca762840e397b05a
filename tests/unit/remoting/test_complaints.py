"""The log lines about misbehaving peers are limited, so that they do not fill the log."""

from rocketmq_broker.remoting.complaints import Complaints


def test_the_same_complaint_about_a_host_is_made_once_a_minute() -> None:
    complaints = Complaints()
    assert [complaints.is_due("10.0.0.1", "TLS", now_s) for now_s in (0, 0, 59, 60, 61, 120)] == [
        True, False, False, True, False, True,
    ]  # fmt: skip


def test_other_hosts_and_other_causes_are_complained_about_all_the_same() -> None:
    complaints = Complaints()
    assert all(complaints.is_due(host, cause, 0) for host in ("10.0.0.1", "10.0.0.2") for cause in ("TLS", "HTTP"))


def test_many_hosts_do_not_fill_the_memory() -> None:
    complaints = Complaints()
    for number in range(5000):
        assert complaints.is_due(f"host-{number}", "TLS", 0)
    assert len(complaints._made_s) <= 1000
