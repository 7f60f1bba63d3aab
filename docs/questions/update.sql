\set o random(1, 1000000)
UPDATE orders SET total = total + 1 WHERE id = :o;
