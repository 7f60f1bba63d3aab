-- Files made, extended, cut short by vacuum, and removed. The rows bear the number that the ledger has.
BEGIN;
DROP TABLE churn;
CREATE TABLE churn AS
    SELECT i AS id, :ledger_seq::bigint AS seq, repeat('x', 200) AS filler FROM generate_series(1, 2000) AS i;
CREATE UNIQUE INDEX ON churn (id);
INSERT INTO churn_state (client, seq, chain)
    VALUES (:ledger_client, :ledger_seq, :ledger_chain)
    ON CONFLICT (client) DO UPDATE SET seq = EXCLUDED.seq, chain = EXCLUDED.chain;
END;
DELETE FROM churn WHERE id > 200;
VACUUM churn;
