\set key random(1, :rows)
SELECT query_update_insert(:key);
