"""Reads the records of pgrig into pandas.

>>> record = pgrig.read("runs/2026-11-25-pgbench-1")   # doctest: +SKIP
>>> record.trials[["variant", "scenario", "tps"]]      # doctest: +SKIP
"""

from .histogram import Histogram
from .record import Record, RecordError, read

__all__ = ["Histogram", "Record", "RecordError", "read"]
