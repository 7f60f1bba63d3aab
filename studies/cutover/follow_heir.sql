BEGIN READ WRITE;
ALTER SUBSCRIPTION new CONNECTION 'host={heir.address} port={heir.port} user={heir.user} dbname={heir.database}';
COMMIT
