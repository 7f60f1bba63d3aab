"""A record: the directory that ``pgrig run`` or ``pgrig compare`` leaves behind."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Union

import pandas as pd

from .histogram import Histogram

#: The format of records that this package reads.
FORMAT = 5


class RecordError(Exception):
    """A directory is no record, or is of a format that this package does not know."""


def read(path: Union[str, Path]) -> "Record":
    """Opens a record, of a study or of a comparison; raises RecordError if the path is none."""
    directory = Path(path)
    if (directory / "record.json").is_file():
        return Record(directory)
    raise RecordError(f"{directory} is no record of pgrig: it has no record.json")


def _json(path: Path) -> Dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"reading {path}: {error}") from error


def _lines(path: Path) -> Iterator[Dict[str, Any]]:
    if path.is_file():
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise RecordError(f"reading {path}, line {number}: {error}") from error


def _axes(axes: Dict[str, str]) -> str:
    return " ".join(f"{axis}={value}" for axis, value in axes.items())


def _figures(figures: List[Dict[str, Any]], same: Dict[str, Any]) -> List[Dict[str, Any]]:
    rows = []
    for figure in figures:
        ratio = figure.get("b_over_a") or {}
        rows.append(
            {
                **same,
                "metric": figure["metric"],
                "unit": figure["unit"],
                "a": figure["a"],
                "b": figure["b"],
                "ratio": ratio.get("value"),
                "low": ratio.get("low"),
                "high": ratio.get("high"),
                "verdict": figure["verdict"],
                "deciding": figure["deciding"],
            }
        )
    return rows


class Record:
    """What ``pgrig run`` or ``pgrig compare`` has measured. Each table is read when it is first asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        #: The first page: study, profile, seed, plan, facts of the machine, notes, the sides of a comparison.
        self.header = _json(directory / "record.json")
        if self.header.get("format") != FORMAT:
            raise RecordError(
                f"{directory} has format {self.header.get('format')}, this package reads {FORMAT}: use the package of that pgrig"
            )

    @cached_property
    def _attempts(self) -> List[Dict[str, Any]]:
        found = sorted(self.directory.glob("trials/*/trial.json"))
        # A run that goes on, or was killed, has attempts that are not complete.
        found = [path for path in found if path.parent.suffix not in (".begun", ".tmp")]
        return [dict(_json(path), directory=path.parent) for path in found]

    @staticmethod
    def _point(attempt: Dict[str, Any]) -> Dict[str, Any]:
        point = {key: attempt[key] for key in ("number", "attempt", "round", "variant", "scenario")}
        name = f"{attempt['variant']}/{attempt['scenario']} {_axes(attempt['axes'])}".rstrip()
        return {**point, "point": name, **attempt["axes"]}

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row for each attempt: its point, its ending, its notes, and each metric of the whole trial."""
        rows = []
        for attempt in self._attempts:
            whole = {name: scopes[""] for name, scopes in attempt["metrics"].items() if "" in scopes}
            notes = "\n".join(note["text"] for note in attempt["notes"])
            rows.append({**self._point(attempt), "ending": attempt["ending"]["is"], "notes": notes, **whole})
        return pd.DataFrame(rows)

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row for each metric of each attempt and scope: a workload, a node, or "" for the trial."""
        rows = [
            {**self._point(attempt), "metric": name, "scope": scope, "value": value}
            for attempt in self._attempts
            for name, scopes in attempt["metrics"].items()
            for scope, value in scopes.items()
        ]
        return pd.DataFrame(rows)

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """One row for each second and workload: counts of transactions, mean and percentiles of latency in ms.

        ``at_s`` counts from the opening of the trial's window; it is negative during warm-up.
        """
        rows = []
        for attempt in self._attempts:
            names = [workload["name"] for workload in attempt["workloads"]]
            for one in _lines(attempt["directory"] / "intervals.jsonl"):
                latency = Histogram.parse(one["latency"])
                counts = {key: value for key, value in one["counts"].items() if key != "errors"}
                length_s = one["length_ns"] / 1e9
                row = {**self._point(attempt), "at_s": self._since(attempt, one["start"]), "length_s": length_s}
                number = one["workload"]
                row["workload"] = names[number] if number < len(names) else str(number)
                row.update(counts, tps=counts["transactions"] / length_s if length_s else None)
                row.update(mean_ms=latency.mean_ms, p50_ms=latency.quantile_ms(0.5))
                row.update(p95_ms=latency.quantile_ms(0.95), p99_ms=latency.quantile_ms(0.99))
                rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """What the probes read: node, metric, label, value, once a second."""
        tables = []
        for attempt in self._attempts:
            path = attempt["directory"] / "samples.csv"
            if path.is_file():
                table = pd.read_csv(path, keep_default_na=False, dtype={"node": str, "label": str})
                table.insert(0, "at_s", [self._since(attempt, at) for at in table.pop("at")])
                tables.append(table.assign(**self._point(attempt)))
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    @cached_property
    def marks(self) -> pd.DataFrame:
        """What happened: actions, phases, errors in the servers' logs."""
        rows = [
            {**self._point(attempt), **mark, "at_s": self._since(attempt, mark["at"])}
            for attempt in self._attempts
            for mark in _lines(attempt["directory"] / "marks.jsonl")
        ]
        return pd.DataFrame(rows).drop(columns="at", errors="ignore")

    @cached_property
    def _pairs(self) -> List[Dict[str, Any]]:
        return [_json(path) for path in sorted(self.directory.glob("pairs/*.json"))]

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """One row for each figure of each attempt at a pairing, with its verdict: a is the denominator, b the numerator.

        pgrig judges the last attempt of a number. ``below_axes`` are the axes of the denominator, as text.
        """
        rows: List[Dict[str, Any]] = []
        for pair in self._pairs:
            same = {key: pair[key] for key in ("number", "attempt", "above", "below", "scenario", "pairs")}
            same["ending"] = pair["ending"]["is"]
            same["below_scenario"] = pair.get("below_scenario") or pair["scenario"]
            same["below_axes"] = _axes(pair.get("below_axes") or pair["axes"])
            rows += _figures(pair["figures"], {**same, **pair["axes"]})
        return pd.DataFrame(rows)

    @cached_property
    def looks(self) -> pd.DataFrame:
        """One row for each segment of pairs: what was known after it."""
        looks = [
            {"number": pair["number"], "attempt": pair["attempt"], **look}
            for pair in self._pairs
            for look in pair.get("looks", [])
        ]
        return pd.json_normalize(looks)

    @cached_property
    def claims(self) -> pd.DataFrame:
        """Every claim with its interval and verdict, as ``pgrig run`` or ``pgrig report`` wrote it last."""
        path = self.directory / "verdicts.csv"
        if not path.is_file():
            raise RecordError(f"{path} is missing: run pgrig report {self.directory}")
        return pd.read_csv(path)

    @staticmethod
    def _since(attempt: Dict[str, Any], at: int) -> float:
        window = attempt.get("window") or {}
        return (at - window.get("open", attempt["began"])) / 1e9
