-- A transaction that holds its slot and does nothing: the published demonstration.
BEGIN;
SELECT pg_sleep(1000);
END;
