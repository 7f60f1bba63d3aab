\set id random(1, :rows)
UPDATE test_sync SET name = 'off' WHERE id = :id;
