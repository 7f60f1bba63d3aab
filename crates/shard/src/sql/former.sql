-- Servers that have left the cluster. One that is restored to a moment before that may hold a slot, which
-- would keep WAL for ever.
CREATE TABLE pgrig_shard.former_node (
    conninfo text PRIMARY KEY,
    number int NOT NULL,
    departed timestamptz NOT NULL DEFAULT clock_timestamp()
);
