\set id random(1, :rows / 10 - 1) * 10 + mod(:ledger_client, 4) + 1
BEGIN;
UPDATE items SET note = 'changed ' || :ledger_seq::text WHERE id = :id;
UPDATE hot_items SET seq = :ledger_seq WHERE id = :id;
UPDATE docs SET seq = :ledger_seq, body = repeat(md5(:ledger_seq::text), 100) WHERE id = :id;
UPDATE spaced SET seq = :ledger_seq WHERE id = :id;
INSERT INTO writes_log (client, seq, chain, id) VALUES (:ledger_client, :ledger_seq, :ledger_chain, :id);
INSERT INTO writes_state (client, seq, chain) VALUES (:ledger_client, :ledger_seq, :ledger_chain)
    ON CONFLICT (client) DO UPDATE SET seq = EXCLUDED.seq, chain = EXCLUDED.chain;
END;
