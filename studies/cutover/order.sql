\set item random(1, :rows)
BEGIN;
INSERT INTO orders (client, seq, chain) VALUES (:ledger_client, :ledger_seq, :ledger_chain);
INSERT INTO shipments (item, note) VALUES (:item, 'shipped');
END;
