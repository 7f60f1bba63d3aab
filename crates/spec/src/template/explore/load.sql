\set id random(1, :rows / 4) * 4 + mod(:ledger_client, 4)
BEGIN;
-- Whatever else is written bears the number, so that items.sql can tell if it is there.
UPDATE items SET note = 'changed ' || :ledger_seq WHERE id = :id;
INSERT INTO writes_log (client, seq, chain, item)
    VALUES (:ledger_client, :ledger_seq, :ledger_chain, :id);
INSERT INTO writes_state (client, seq, chain)
    VALUES (:ledger_client, :ledger_seq, :ledger_chain)
    ON CONFLICT (client) DO UPDATE SET seq = EXCLUDED.seq, chain = EXCLUDED.chain;
END;
