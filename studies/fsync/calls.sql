-- One call, which the shard of the key runs.
\set key random(1, 1000)
SELECT write_log(:key, :ledger_client, :ledger_seq, :ledger_chain);
