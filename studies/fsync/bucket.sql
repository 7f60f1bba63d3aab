-- One bucket of a cluster; {bucket} is its schema. Its keys, and what clients write of themselves: with a random
-- key, because a sequence does not move along with its rows.
CREATE TABLE {bucket}.keys (key bigint PRIMARY KEY);
CREATE TABLE {bucket}.writes_log (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    key bigint NOT NULL,
    client int NOT NULL,
    seq bigint NOT NULL,
    chain bigint NOT NULL
);

CREATE FUNCTION {bucket}.write_log(key bigint, client int, seq bigint, chain bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO {bucket}.writes_log (key, client, seq, chain) VALUES ($1, $2, $3, $4);
$$;
