-- What every data node knows of the cluster.
CREATE SCHEMA IF NOT EXISTS pgrig_shard;

CREATE TABLE IF NOT EXISTS pgrig_shard.node (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    cluster text NOT NULL,
    number int NOT NULL,
    -- The mapping that it believes in.
    version bigint NOT NULL,
    -- The last tool that changed it: an older one that comes back is refused.
    tool bigint NOT NULL DEFAULT 0
);

-- arriving: being copied to here; owned: read and written here; fenced: only read, about to move;
-- gone: moved away, its rows are still here.
CREATE TABLE IF NOT EXISTS pgrig_shard.bucket (
    bucket int PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('arriving', 'owned', 'fenced', 'gone')),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The switch by which it came, or left; of one that arrives 0.
    version bigint NOT NULL DEFAULT 0,
    -- The node to which one has left that is gone.
    target int
);

-- A key's bucket, as PARTITION BY HASH (key) with this modulus would have it. Only the lowest bits
-- of the sum count, and adding them first cannot overflow.
CREATE OR REPLACE FUNCTION pgrig_shard.bucket_of(key bigint) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (((hashint8extended(key, 8816678312871386365) & {mask})
             + (5305509591434766563 & {mask})) & {mask})::int
$$;

-- Says why a call cannot be served here. Retryable: the proxy that asks again knows better.
CREATE OR REPLACE FUNCTION pgrig_shard.refuse(key bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    asked int := pgrig_shard.bucket_of(key);
    found text := (SELECT state FROM pgrig_shard.bucket WHERE bucket = asked);
    me int := (SELECT number FROM pgrig_shard.node);
BEGIN
    IF key IS NULL THEN
        RAISE EXCEPTION 'a key that is null has no bucket'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Give the function a key.';
    END IF;
    RAISE EXCEPTION '%', CASE found
            WHEN 'fenced' THEN format('bucket %s is about to leave node %s', asked, me)
            WHEN 'gone' THEN format('bucket %s has left node %s', asked, me)
            WHEN 'arriving' THEN format('bucket %s has not arrived at node %s yet', asked, me)
            ELSE format('bucket %s is not on node %s', asked, me)
        END
        USING ERRCODE = 'serialization_failure', HINT = 'Try again: the mapping is changing.';
END
$$;

CREATE OR REPLACE FUNCTION pgrig_shard.refuse_version(theirs bigint, mine bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'version % of the mapping was asked for, node % has version %',
            theirs, (SELECT number FROM pgrig_shard.node), mine
        USING ERRCODE = 'serialization_failure', HINT = 'Try again: the mapping is changing.';
END
$$;

-- A function that is declared to change nothing has tried to, while a bucket of the node was fenced.
CREATE OR REPLACE FUNCTION pgrig_shard.refuse_write(called text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% writes, although it is STABLE or IMMUTABLE, and buckets are about to leave node %',
            called, (SELECT number FROM pgrig_shard.node)
        USING ERRCODE = 'serialization_failure',
              HINT = 'Try again. Declare the function VOLATILE in the template.';
END
$$;

-- Every change begins with this: the newest tool alone may go on.
CREATE OR REPLACE FUNCTION pgrig_shard.take(asking bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pgrig_shard.node SET tool = asking WHERE tool <= asking;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another pgrig-shard has taken over'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END
$$;

-- Calls arrive as an unprivileged role. What they read here holds no secret.
GRANT USAGE ON SCHEMA pgrig_shard TO PUBLIC;
GRANT SELECT ON pgrig_shard.node, pgrig_shard.bucket TO PUBLIC;
