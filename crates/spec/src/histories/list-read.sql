-- Two lists that list-append appends to, read in one transaction.
\set k1 :history_ms / 250 * 8 + random(0, 7)
\set k2 :history_ms / 250 * 8 + random(0, 7)
BEGIN;
-- \history list :k1
SELECT elements FROM history_lists WHERE key = :k1;
-- \history list :k2
SELECT elements FROM history_lists WHERE key = :k2;
COMMIT;
