BEGIN;
INSERT INTO prepared (client, seq, chain) VALUES (:ledger_client, :ledger_seq, :ledger_chain);
PREPARE TRANSACTION 'gid :ledger_seq';
INSERT INTO gids (gid, done) VALUES ('gid :ledger_seq', false);
SELECT pg_sleep(0.6);
UPDATE gids SET done = true WHERE gid = 'gid :ledger_seq';
COMMIT PREPARED 'gid :ledger_seq';
