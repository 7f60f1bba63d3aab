\set row random(1, 4)
BEGIN;
UPDATE hot SET n = n + 1 WHERE id = :row;
SELECT pg_sleep(0.02);
COMMIT;
