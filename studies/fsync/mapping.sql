-- The mapping of a cluster's buckets fits together, and fits the moves that it notes.
SELECT format('bucket %s is on no node', b)
    FROM pgrig_shard.cluster, generate_series(0, buckets - 1) AS b
    WHERE NOT EXISTS (
        SELECT FROM pgrig_shard.bucket JOIN pgrig_shard.node ON number = node WHERE bucket = b)
UNION ALL
SELECT format('bucket %s is of version %s, the mapping of %s', bucket, bucket.version, cluster.version)
    FROM pgrig_shard.bucket, pgrig_shard.cluster WHERE bucket.version > cluster.version
UNION ALL
SELECT format('batch %s has been switched, and its bucket %s is on node %s', batch.number, bucket, node)
    FROM pgrig_shard.batch JOIN pgrig_shard.bucket ON bucket = ANY (buckets)
    WHERE step IN ('switched', 'done') AND node <> target AND bucket.version <= batch.version
UNION ALL
SELECT format('batch %s is %s, and its bucket %s has been moved', batch.number, step, bucket)
    FROM pgrig_shard.batch JOIN pgrig_shard.bucket ON bucket = ANY (buckets)
    WHERE step NOT IN ('switched', 'done', 'abandoned') AND node <> source;
