"""Makes the code of the wire from proto/: `python -m scripts.generate`. What it makes is committed; a test compares."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def protos() -> list[str]:
    """Every contract, relative to proto/."""
    return sorted(path.relative_to(ROOT / "proto").as_posix() for path in (ROOT / "proto").rglob("*.proto"))


def generate(target: Path) -> list[str]:
    """Write the code of every contract below `target`; return the names of the files, relative to it."""
    from grpc_tools import protoc

    outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
    status = protoc.main(["protoc", f"-I{ROOT / 'proto'}", *outputs, *protos()])
    if status != 0:
        raise SystemExit(status)
    stems = [name.removesuffix(".proto") for name in protos()]
    return [f"{stem}{ending}" for stem in stems for ending in ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")]


if __name__ == "__main__":
    sys.stdout.write("\n".join(generate(ROOT)) + "\n")
