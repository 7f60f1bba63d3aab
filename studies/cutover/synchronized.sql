-- On the standby of the publisher: it has the slot of the subscription, for use after its promotion.
SELECT count(*) = 1 FROM pg_replication_slots WHERE slot_name = 'new' AND synced AND NOT temporary AND invalidation_reason IS NULL
