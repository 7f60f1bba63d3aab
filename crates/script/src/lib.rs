//! pgbench's script language: parse, check, evaluate.
