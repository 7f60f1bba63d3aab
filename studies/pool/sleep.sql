-- A transaction that holds its slot and does nothing: the published statement in a transaction block.
BEGIN;
SELECT pg_sleep(1000);
END;
