"""Histograms that are right, and damaged ones."""

import pytest

import pgrig


def test_histograms_of_other_tools_are_read():
    # A line of HdrHistogram's own documentation.
    text = "HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKmcCAEf2CsI="
    latency = pgrig.Histogram.parse(text)
    assert latency.count > 0 and latency.quantile_ms(0.0) <= latency.quantile_ms(1.0)


@pytest.mark.parametrize("text", ["", "AAAA", "HISTFAAAAEV42pNpmSzM", "no base64 at all!"])
def test_damaged_histograms_are_refused(text):
    with pytest.raises(ValueError):
        pgrig.Histogram.parse(text)
