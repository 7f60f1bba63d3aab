-- The published demonstration word for word: no transaction block around it.
SELECT pg_sleep(1000);
