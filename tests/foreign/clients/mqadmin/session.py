"""Runs all commands of Apache's mqadmin in one JVM, because the start of a JVM takes a second."""

import base64
import json
import os
import re
import selectors
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

PEER = Path(__file__).parents[2] / "apache" / "peer"
PROGRAM = Path(__file__).with_name("MqadminSession.java")
CLASS_PATH_SECONDS = 300
"""The first look downloads the jars."""
COMMAND_SECONDS = 60
_EXPORTED = re.compile(r"export (?P<path>/\S+) success")
_STACK_FRAME = re.compile(r"^\s+(at |\.\.\. )")


class Mqadmin:
    """Runs mqadmin commands, and returns their output with stack traces reduced to their messages."""

    def __init__(self, namesrv_addr: str, home: Path) -> None:
        """Uses `home` as the home of RocketMQ and of the user, with logging off."""
        self._environment = {**os.environ, "NAMESRV_ADDR": namesrv_addr}
        self._home = home
        self.exports = home / "exports"
        """A folder for what commands write into files."""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Starts the JVM."""
        (self._home / "conf").mkdir(parents=True, exist_ok=True)
        (self._home / "conf" / "logback_tools.xml").write_text('<configuration><root level="OFF"/></configuration>\n')
        (self._home / "logback.xml").write_text('<configuration><root level="OFF"/></configuration>\n')
        class_path = subprocess.run(
            [PEER, "classpath"], check=True, stdout=subprocess.PIPE, text=True, timeout=CLASS_PATH_SECONDS
        ).stdout.strip()
        properties = {
            "rocketmq.home.dir": self._home,
            "user.home": self._home,
            "rocketmq.client.logUseSlf4j": "true",
            "rocketmq.client.rebalance.waitInterval": "500",
        }
        self._process = subprocess.Popen(
            [
                "java",
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                *(f"-D{name}={value}" for name, value in properties.items()),
                "-cp",
                f"{self._home}:{class_path}",
                str(PROGRAM),
            ],
            cwd=self._home,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the JVM."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate(timeout=30)

    def run(self, *words: str) -> str:
        """Runs one command. Returns its output and the exported file's content, with members in order."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(COMMAND_SECONDS), f"mqadmin {' '.join(words)}: nothing after {COMMAND_SECONDS} s"
        printed = base64.b64decode(self._process.stdout.readline()).decode()
        lines = [line for line in printed.splitlines() if not _STACK_FRAME.match(line)]
        if exported := _EXPORTED.search(printed):
            content = json.loads(Path(exported["path"]).read_text())
            lines.append(json.dumps(content, indent=1, sort_keys=True))
        return "\n".join(lines)
