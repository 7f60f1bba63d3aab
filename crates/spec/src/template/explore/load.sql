\set id random(1, :rows / 4) * 4 + mod(:ledger_client, 4)
BEGIN;
UPDATE items SET note = 'changed ' || :ledger_seq WHERE id = :id;
INSERT INTO writes_log (client, seq, chain) VALUES (:ledger_client, :ledger_seq, :ledger_chain);
INSERT INTO writes_state (client, seq, chain)
    VALUES (:ledger_client, :ledger_seq, :ledger_chain)
    ON CONFLICT (client) DO UPDATE SET seq = EXCLUDED.seq, chain = EXCLUDED.chain;
END;
