//! `pgrig bench`: pgbench's options, initialisation, logs and words over the load engine.
