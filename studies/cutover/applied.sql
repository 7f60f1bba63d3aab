-- On the server that publishes: its one subscriber has applied all that was written.
SELECT count(*) = 1 AND bool_and(confirmed_flush_lsn >= pg_current_wal_lsn()) FROM pg_replication_slots WHERE slot_type = 'logical'
