\set writer random(0, 1)
SELECT :writer AS ledger_read_client, coalesce(max(seq), 0) AS ledger_read_seq FROM log WHERE client = :writer AND :ledger_seq > 0 \gset
