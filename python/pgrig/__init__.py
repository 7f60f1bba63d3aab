"""Reads the records of pgrig into pandas.

>>> record = pgrig.read("runs/2026-11-25-pgbench-1")   # doctest: +SKIP
>>> record.trials[["variant", "scenario", "tps"]]      # doctest: +SKIP
"""

from .histogram import Histogram
from .record import Comparison, Record, RecordError, read

__all__ = ["Comparison", "Histogram", "Record", "RecordError", "read"]
