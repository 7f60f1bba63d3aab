\set userid random(1, :rows)
SELECT logout(:userid);
