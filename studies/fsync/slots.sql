-- Nothing but flushes of directories makes the name of a new slot durable.
INSERT INTO slots (client, seq, chain, name)
    SELECT :ledger_client, :ledger_seq, :ledger_chain, slot_name
    FROM pg_create_physical_replication_slot('s' || nextval('slot_numbers'));
