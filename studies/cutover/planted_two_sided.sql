-- On the new server: rows are changed that the old one changes as well.
BEGIN READ WRITE;
UPDATE stock SET note = 'two-sided' WHERE id <= 10 AND EXISTS (SELECT FROM pg_subscription);
COMMIT
