-- On both servers: an unlogged table, whose rows are not replicated.
BEGIN READ WRITE;
CREATE UNLOGGED TABLE carts (id int PRIMARY KEY);
INSERT INTO carts SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_subscription);
COMMIT
