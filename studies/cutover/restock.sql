\set item random(1, :rows)
UPDATE stock SET count = count + 1 WHERE id = :item;
