\set userid random(1, :rows)
SELECT * FROM logout(:userid);
