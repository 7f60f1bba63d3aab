-- pgbench's tables, but with 5,000 branches and 50,000 tellers at any scale, so that a workload can
-- draw few of them (rows are the queue) or all of them (they are not).
TRUNCATE pgbench_tellers, pgbench_branches;
INSERT INTO pgbench_branches (bid, bbalance) SELECT bid, 0 FROM generate_series(1, 5000) AS bid;
INSERT INTO pgbench_tellers (tid, bid, tbalance)
    SELECT tid, (tid - 1) / 10 + 1, 0 FROM generate_series(1, 50000) AS tid;
VACUUM (FREEZE, ANALYZE) pgbench_tellers, pgbench_branches;
