-- On the server that publishes: its one subscriber is less than a megabyte of changes behind, under load.
SELECT count(*) = 1 AND bool_and(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) < 1000000) FROM pg_replication_slots WHERE slot_type = 'logical' AND active
