BEGIN READ WRITE;
UPDATE stock SET count = count + 1 WHERE id <= 10;
COMMIT
