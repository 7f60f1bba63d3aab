BEGIN READ WRITE;
SELECT setval('shipments_id_seq', (SELECT max(id) FROM shipments) + 1000);
ALTER SUBSCRIPTION back DISABLE;
ALTER DATABASE postgres SET default_transaction_read_only = off;
COMMIT
