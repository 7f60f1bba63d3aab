//! From a study and its record to verdicts, and from two records to differences.
