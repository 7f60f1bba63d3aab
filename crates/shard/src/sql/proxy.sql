-- The cluster as the proxy knows it, and what is being done to it.
CREATE SCHEMA pgrig_shard;

CREATE TABLE pgrig_shard.cluster (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    id text NOT NULL,
    buckets int NOT NULL,
    -- Of the mapping; every move of buckets adds one.
    version bigint NOT NULL,
    -- The SQL of one bucket.
    template text NOT NULL,
    -- The first parameter of the functions that run in one bucket.
    key_name text NOT NULL,
    -- Counts the tools that have worked on the cluster.
    tool bigint NOT NULL DEFAULT 0
);

CREATE TABLE pgrig_shard.node (
    number int PRIMARY KEY,
    -- How tools and other nodes reach it.
    conninfo text NOT NULL,
    -- How the proxy reaches it: the same, or a pooler before it.
    route text NOT NULL,
    leaving boolean NOT NULL DEFAULT false
);

CREATE TABLE pgrig_shard.bucket (
    bucket int PRIMARY KEY,
    node int NOT NULL,
    version bigint NOT NULL
);

-- The functions of a bucket, which the proxy offers.
CREATE TABLE pgrig_shard.function (
    name text NOT NULL,
    parameters text NOT NULL,
    names text[] NOT NULL,
    result text NOT NULL,
    is_read boolean NOT NULL,
    -- The parameters with modes and defaults, and the names of those that are results.
    declared text NOT NULL,
    outputs text[] NOT NULL,
    is_set boolean NOT NULL,
    is_strict boolean NOT NULL,
    PRIMARY KEY (name, parameters)
);

-- Buckets that move together, and how far they have come.
CREATE TABLE pgrig_shard.batch (
    number int PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    source int NOT NULL,
    target int NOT NULL,
    buckets int[] NOT NULL,
    step text NOT NULL DEFAULT 'planned',
    -- Of the mapping that has them on the target.
    version bigint,
    rows bigint,
    bytes bigint,
    fence_ms double precision,
    planned timestamptz NOT NULL DEFAULT clock_timestamp(),
    switched timestamptz,
    done timestamptz
);

CREATE FUNCTION pgrig_shard.bucket_of(key bigint) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (((hashint8extended(key, 8816678312871386365) & {mask})
             + (5305509591434766563 & {mask})) & {mask})::int
$$;
