\set key random(1, :rows)
SELECT query_smalltbl_any(:key);
