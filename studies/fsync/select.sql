\set id random(1, :rows)
SELECT name FROM test_sync WHERE id = :id;
