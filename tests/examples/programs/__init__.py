"""The example programs that are run through crashes: what is sent to each, and how its output is judged."""

from __future__ import annotations

from tests.examples.programs.count_by_key import CountByKey
from tests.examples.programs.dedupe import Dedupe
from tests.examples.programs.enrich import Enrich
from tests.examples.programs.fan_in import FanIn
from tests.examples.programs.keep_even import KeepEven
from tests.examples.programs.kit import Program
from tests.examples.programs.per_minute import PerMinute
from tests.examples.programs.route import Route
from tests.examples.programs.split_words import SplitWords
from tests.examples.programs.upper import Upper

SMALL_PROGRAMS: tuple[Program, ...] = (Upper(), CountByKey(), KeepEven(), SplitWords())
PROGRAMS: tuple[Program, ...] = (Route(), FanIn(), Dedupe(), PerMinute(), Enrich(), *SMALL_PROGRAMS)
