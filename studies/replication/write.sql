BEGIN;
INSERT INTO written (client, seq, chain) VALUES (:ledger_client, :ledger_seq, :ledger_chain);
INSERT INTO last_written VALUES (:ledger_client, :ledger_seq, :ledger_chain) ON CONFLICT (client) DO UPDATE SET seq = excluded.seq, chain = excluded.chain;
END;
