-- On the old server: a large object, which is not replicated.
SELECT lo_from_bytea(0, '\x00ff') WHERE NOT EXISTS (SELECT FROM pg_subscription)
