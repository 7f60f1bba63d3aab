\set from random(1, 1000000)
BEGIN;
SELECT count(*) FROM generate_series(:from, :from + 20000) AS n WHERE md5(n::text) < '8';
COMMIT;
