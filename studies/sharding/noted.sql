\set key random(1, :rows)
SELECT query_update_insert_noted(:key, :ledger_client, :ledger_seq, :ledger_chain);
