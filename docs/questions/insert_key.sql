INSERT INTO keys VALUES (new_key(), repeat('y', 60));
