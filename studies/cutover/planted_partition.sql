-- On the old server: a partition for a moment. The new one has no such table, and applies nothing any more.
DO $do$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_subscription) THEN
        CREATE TABLE visits_2 PARTITION OF visits FOR VALUES FROM (10) TO (20);
        INSERT INTO visits VALUES (15);
        COMMIT;
        DROP TABLE visits_2;
    END IF;
END $do$
