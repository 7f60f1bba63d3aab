\set key random(1, :rows)
SELECT query_smalltbl(:key);
