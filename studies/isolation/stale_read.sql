-- A server that answers a stale value: one read in twenty lacks the last element of its list.
\set k1 :history_ms / 250 * 8 + random(0, 7)
-- \history list :k1
SELECT CASE WHEN random() < 0.05 THEN elements[1: cardinality(elements) - 1] ELSE elements END FROM history_lists WHERE key = :k1;
