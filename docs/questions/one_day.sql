\set d random(0, 364)
SELECT count(*), sum(total) FROM orders WHERE day = date '2025-01-01' + :d;
