\set key random_bucket(1, :rows, :shards, :shard)
SELECT query_pk(:key);
