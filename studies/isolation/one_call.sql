-- One call of a function, which one shard runs: an append or a read.
\set k1 :history_ms / 250 * 8 + random(0, 7)
\set v1 :history_value
\if random(0, 1) = 0
-- \history append :k1 :v1
SELECT list_append(:k1, :v1);
\else
-- \history list :k1
SELECT list_read(:k1);
\endif
