//! From a plan to a record: preflight, rounds, timeline.
