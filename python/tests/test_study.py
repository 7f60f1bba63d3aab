"""Tests on the record of a study, which PGRIG_RECORD names."""

import json
import os
import shutil
from pathlib import Path

import pytest

import pgrig


@pytest.fixture(scope="module")
def record():
    return pgrig.read(os.environ["PGRIG_RECORD"])


def test_quantiles_agree_with_the_metrics(record):
    for trial in record.directory.glob("trials/*/trial.json"):
        trial = json.loads(trial.read_text())
        for workload in trial["workloads"]:
            if any(number for name, number in workload["counts"].items() if name.endswith("_failures")):
                # The metric counts a failure as a transaction that takes longer than any other.
                continue
            latency = pgrig.Histogram.parse(workload["latency"])
            assert latency.count == workload["counts"]["transactions"]
            for name, quantile in [("latency_p50_ms", 0.5), ("latency_p99_ms", 0.99)]:
                expected = trial["metrics"][name][workload["name"]]
                # It also counts what was under way when the window closed, which is anywhere among the rest.
                open_count = pgrig.Histogram.parse(workload["open"]).count
                rank = quantile * (latency.count + open_count)
                lower = latency.quantile_ms(max(rank - open_count, 0) / latency.count)
                assert expected >= lower * 0.99
                if rank <= latency.count:
                    assert expected <= latency.quantile_ms(min((rank + 1) / latency.count, 1)) * 1.01


def test_a_trial_is_a_row(record):
    trials = record.trials
    assert len(trials) >= 2 and set(trials["ending"]) == {"done"}
    assert (trials["tps"] > 0).all() and {"number", "round", "variant", "scenario"} <= set(trials)
    whole = record.metrics.query("scope == ''")
    assert whole.groupby(["number", "metric"])["value"].count().max() == 1


def test_intervals_add_up_to_the_trial(record):
    inside = record.intervals.query("at_s >= 0").groupby("number")["transactions"].sum()
    counted = record.trials.set_index("number")["transactions"]
    assert (inside - counted).abs().max() <= 0.02 * counted.max()
    assert record.intervals["p99_ms"].dropna().min() > 0


def test_samples_marks_and_claims_are_tables(record):
    assert {"at_s", "node", "metric", "value"} <= set(record.samples)
    assert (record.marks["kind"] == "phase").any()
    assert {"claim", "verdict", "low", "high"} <= set(record.claims) and len(record.claims) > 0


def test_attempts_that_are_not_complete_are_left_out(record, tmp_path: Path):
    copy = tmp_path / "record"
    shutil.copytree(record.directory, copy)
    trial = next(copy.glob("trials/*/trial.json")).parent
    for suffix in (".begun", ".tmp"):
        shutil.copytree(trial, trial.with_name(trial.name + suffix))
    assert len(pgrig.read(copy).trials) == len(record.trials)


def test_what_is_no_record_is_named(tmp_path: Path):
    with pytest.raises(pgrig.RecordError, match="it has no record.json"):
        pgrig.read(tmp_path)
    (tmp_path / "record.json").write_text('{"format": 99}')
    with pytest.raises(pgrig.RecordError, match="reads 5: use the package"):
        pgrig.read(tmp_path)
    (tmp_path / "record.json").write_text("{")
    with pytest.raises(pgrig.RecordError, match="record.json"):
        pgrig.read(tmp_path)
