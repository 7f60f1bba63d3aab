-- Reads the whole table.
SELECT sum(abalance) FROM pgbench_accounts;
