"""Tests on the record of a comparison, which PGRIG_COMPARISON names."""

import os

import pgrig


def test_a_comparison_has_figures():
    comparison = pgrig.read(os.environ["PGRIG_COMPARISON"])
    figures = comparison.pairs.set_index("metric")
    throughput = figures.loc["throughput"]
    assert throughput["a"] > 0
    assert 0 < throughput["low"] < throughput["ratio"] < throughput["high"]
    assert (throughput["number"], throughput["attempt"], throughput["ending"]) == (1, 1, "done")
    assert len(comparison.looks) > 0
