\set key random(1, :rows)
SELECT insert_log(:key);
