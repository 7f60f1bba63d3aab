BEGIN READ WRITE;
ALTER SUBSCRIPTION new DISABLE;
ALTER DATABASE postgres SET default_transaction_read_only = off;
COMMIT
