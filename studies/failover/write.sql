BEGIN;
INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);
UPDATE state SET seq = :ledger_seq, chain = :ledger_chain WHERE client = :ledger_client;
SELECT inet_server_addr() - '0.0.0.0' AS ledger_server, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int AS ledger_timeline \gset
COMMIT;
