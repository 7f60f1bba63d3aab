SELECT 'the replication slot ' || name || ' is not there' FROM slots
    WHERE name NOT IN (SELECT slot_name FROM pg_replication_slots)
UNION ALL SELECT 'the sequence gives what it gave before' FROM numbers
    WHERE last_value < (SELECT max(substr(name, 2)::bigint) FROM slots);
