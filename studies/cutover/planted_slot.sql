-- On the old server: the slot of the subscription is dropped, and made again after a moment.
SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'new' AND active;
DO $do$
BEGIN
    WHILE EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'new' AND active) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
END $do$;
SELECT pg_drop_replication_slot(slot_name), pg_sleep(0.5) FROM pg_replication_slots WHERE slot_name = 'new';
SELECT pg_create_logical_replication_slot('new', 'pgoutput') WHERE NOT EXISTS (SELECT FROM pg_subscription)
