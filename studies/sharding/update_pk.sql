\set key random(1, :rows)
SELECT update_pk(:key);
