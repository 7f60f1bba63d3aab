-- On the server that publishes: its one subscriber has caught up with the changes under load.
SELECT count(*) = 1 FROM pg_replication_slots s JOIN pg_stat_replication r ON r.pid = s.active_pid WHERE slot_type = 'logical' AND state = 'streaming'
