"""Checks whether the file system can hold a topic's folder of consume queues. Some file systems ignore case or reserve names."""

from collections.abc import Iterable
from pathlib import Path

from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.store.files import FileSystem


class TopicFolders:
    """The folders of topics in one directory. Two topics in one folder would overwrite each other's consume queues."""

    def __init__(self, directory: Path, existing_file: Path, files: FileSystem) -> None:
        """`existing_file` is a file on the same file system with a letter in its name. It must exist at the first `check`."""
        self._directory = directory
        self._existing_file = existing_file
        self._files = files
        self._ignores_case: bool | None = None
        """Whether the file system ignores case, or None before the first check, which is the only one that asks it."""

    def check(self, topic: str, others: Iterable[str]) -> None:
        """Checks that the topic can have its own folder beside those of the other topics. Raises IllegalMessage."""
        if self._files.is_reserved(self._directory / topic):
            raise IllegalMessage(f"topic {topic} cannot be stored: this system does not accept a folder of this name")
        if self._ignores_case is None:
            self._ignores_case = self._files.ignores_case(self._existing_file)
        if self._ignores_case:
            folded = topic.lower()
            for other in others:
                if other.lower() == folded and other != topic:
                    raise IllegalMessage(
                        f"topic {topic} cannot be stored beside topic {other}: the names of their folders differ only in case, "
                        "which this file system ignores"
                    )
