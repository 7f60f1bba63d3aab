\set id random(1, 3)
BEGIN;
SELECT n FROM locked WHERE id = :id FOR KEY SHARE;
UPDATE locked SET n = n + 1 WHERE id = :id;
INSERT INTO locked_log (client, seq, chain, id) VALUES (:ledger_client, :ledger_seq, :ledger_chain, :id);
END;
