"""Compiles the .proto files of RocketMQ 5's API. The output is a descriptor set for the broker, and stubs for mypy.

`make protos` runs this script. A test compares the output with the files in the repository.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

PROTOS: Final = Path(__file__).resolve().parents[2] / "broker" / "rocketmq_broker" / "proxy" / "protos"
FOLDER: Final = Path("apache") / "rocketmq" / "v2"
SOURCES: Final = ("definition", "service")
_IMPORT: Final = b"from apache.rocketmq.v2 import", b"from rocketmq_broker.proxy.protos import"


def compiled() -> dict[str, bytes]:
    """Returns the content of each generated file, keyed by its name in `PROTOS`."""
    with TemporaryDirectory() as name:
        made = Path(name)
        subprocess.run(
            [
                *(sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTOS}", f"--pyi_out={made}"),
                *("--include_imports", f"--descriptor_set_out={made / 'messages.binpb'}"),
                *(str(FOLDER / f"{source}.proto") for source in SOURCES),
            ],
            check=True,
        )
        stubs = {f"{source}_pb2.pyi": (made / FOLDER / f"{source}_pb2.pyi").read_bytes().replace(*_IMPORT) for source in SOURCES}
        return {"messages.binpb": (made / "messages.binpb").read_bytes(), **stubs}


if __name__ == "__main__":
    for file_name, content in compiled().items():
        (PROTOS / file_name).write_bytes(content)
