\set key permute(random_zipfian(1, :rows, 1.07), :rows, 8816) + 1
SELECT query_pk(:key);
