\set id random(1, :rows)
UPDATE test_sync SET name = md5(random()::text) WHERE id = :id;
