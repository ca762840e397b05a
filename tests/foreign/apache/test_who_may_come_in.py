"""Tests that the example in docs/access.md runs unchanged, except for its ports."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from demo.ports import free_ports

ROOT = Path(__file__).resolve().parents[3]
PEER = ROOT / "tests" / "foreign" / "apache" / "peer"
EXAMPLE = "## An example from the first certificate to the first message"
MQADMIN = """#!/bin/sh
# On a slow machine a JVM's first TLS handshake may take longer than mqadmin waits for its request to leave.
for attempt in 1 2 3 4 5; do
    printed=$(java $JAVA_OPT -Drocketmq.home.dir="$ROCKETMQ_HOME" -Duser.home="$ROCKETMQ_HOME" \\
        -Drocketmq.client.logUseSlf4j=true -cp '{class_path}' org.apache.rocketmq.tools.command.MQAdminStartup "$@" 2>&1)
    case $printed in *Exception*) ;; *) break ;; esac
done
echo "$printed"
"""

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(700)]


def commands() -> str:
    """Returns the text of all indented blocks in the example's section."""
    page = (ROOT / "docs" / "access.md").read_text()
    section = page.split(EXAMPLE)[1].split("\n## ")[0]
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.MULTILINE)
    return "\n".join(textwrap.dedent(block) for block in blocks)


def programs(folder: Path) -> Path:
    """Creates a folder with mqadmin and python, as on a machine where both are installed."""
    folder.mkdir()
    class_path = subprocess.run([PEER, "classpath"], check=True, capture_output=True, text=True, timeout=300).stdout.strip()
    (folder / "mqadmin").write_text(MQADMIN.format(class_path=class_path))
    (folder / "conf").mkdir()
    (folder / "conf" / "logback_tools.xml").write_text('<configuration><root level="OFF"/></configuration>\n')
    (folder / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in ("mqadmin", "python"):
        (folder / name).chmod(0o755)
    return folder


def test_the_example_of_tls_and_acl_does_what_the_page_says(tmp_path: Path) -> None:
    namesrv_port, port = free_ports(2)
    script = (
        commands()
        .replace("aclEnable=true\n", f"aclEnable=true\nlistenPort={port}\nnamesrvListenPort={namesrv_port}\n")
        .replace("127.0.0.1:9876", f"127.0.0.1:{namesrv_port}")
    )
    assert script.count("openssl") == 4
    assert script.count(str(namesrv_port)) == 2
    installed = programs(tmp_path / "installed")
    environment = {
        **os.environ,
        "ROCKETMQ_HOME": str(installed),
        "PATH": f"{installed}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
        "NAMESRV_ADDR": f"127.0.0.1:{namesrv_port}",
    }
    run = subprocess.Popen(
        ["bash", "-e", "-c", f"{script}\nkill %1; wait"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = run.communicate(timeout=300)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    log = (tmp_path / "rocketmq" / "broker.log").read_text()
    assert run.returncode == 0, f"{printed}\n{log}"
    lines = [line for line in printed.splitlines() if line]
    assert f"create topic to 127.0.0.1:{port} success." in lines, printed
    assert "no pending transactions" in lines
    sent = lines[lines.index("no pending transactions") + 1 :]
    assert sent[0] == "SEND_OK"
    assert any("No default permission for topic:orders" in line for line in sent[1:])
    assert any("Check signature failed for accessKey=order-service" in line for line in sent[1:])
    assert "refused a request with code" in log
    for name in ("operators", "orders", "credits"):
        secret = (tmp_path / "rocketmq" / f"{name}.secret").read_text().strip()
        assert secret not in log + printed
