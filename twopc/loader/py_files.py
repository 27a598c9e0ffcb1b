"""The files of `--py-files`, where the driver runs: a job file imports from them before Spark has them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from twopc.errors import ConfigurationError


def use_py_files(names: Iterable[str]) -> None:
    """Have modules be found in these files too, as Spark's workers find them.

    One that is named by a URL is fetched by Spark, for the workers; here it is passed over.
    """
    for name in names:
        if "://" in name:
            continue
        path = Path(name).resolve()
        if not path.is_file():
            raise ConfigurationError(f"--py-files: there is no file {name}")
        place = str(path.parent if path.suffix == ".py" else path)
        if place not in sys.path:
            # Where PySpark puts them on the workers: behind the job's own folder, before what is installed.
            sys.path.insert(1, place)
