-- A slot is made before the row that names it.
SELECT 'the replication slot ' || name || ' is not there' FROM slots
    WHERE name NOT IN (SELECT slot_name FROM pg_replication_slots);
