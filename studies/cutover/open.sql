BEGIN READ WRITE;
SELECT setval('shipments_id_seq', (SELECT max(id) FROM shipments) + 1000);
ALTER SUBSCRIPTION new DISABLE;
ALTER DATABASE postgres SET default_transaction_read_only = off;
COMMIT
