\set key random(1, :rows)
SELECT * FROM query_pk_everywhere(:key);
