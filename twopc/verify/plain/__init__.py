"""Windows, tables and joins written down a second time, from what the guide says of them, to judge what a run has made.

A run's own operators keep what they hold in a store, write it back, cut batches, and have timers in a queue. None of
that is here, so what goes wrong there is not repeated: all is in dicts, one record after the other. They begin without
state. The functions, serdes and keys are the job's; where windows begin by the clocks of a timezone is worked out once.
"""

from twopc.verify.plain.steps import plainly

__all__ = ["plainly"]
