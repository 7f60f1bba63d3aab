\set userid random(1, :rows)
SELECT * FROM login(:userid);
