//! Histograms, steady state, intervals, comparison.
