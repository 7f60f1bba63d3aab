-- Each client changes rows of its own, so that none waits for another's lock. The row bears what the log says of it.
\set id random(1, :rows / 10) * 10 + mod(:ledger_client, 8) + 1
BEGIN;
UPDATE test_sync SET name = 'off ' || :ledger_seq::text WHERE id = :id;
INSERT INTO writes_log (client, seq, chain, id)
    VALUES (:ledger_client, :ledger_seq, :ledger_chain, :id);
INSERT INTO writes_state (client, seq, chain)
    VALUES (:ledger_client, :ledger_seq, :ledger_chain)
    ON CONFLICT (client) DO UPDATE SET seq = EXCLUDED.seq, chain = EXCLUDED.chain;
END;
