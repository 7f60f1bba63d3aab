\set key random(1, :rows / 64)
SELECT query_smalltbl(:key);
