BEGIN;
INSERT INTO log VALUES (:ledger_client, :ledger_seq, :ledger_chain);
UPDATE state SET seq = :ledger_seq, chain = :ledger_chain WHERE client = :ledger_client;
COMMIT;
