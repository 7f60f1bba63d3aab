\set userid random(1, :rows)
SELECT login(:userid);
