ALTER TABLE people RENAME TO columns;
CREATE TABLE documents (id int PRIMARY KEY, body jsonb NOT NULL);
INSERT INTO documents SELECT id, to_jsonb(c) - 'id' FROM columns c;
CREATE VIEW people AS SELECT id, body->>'name' AS name, body->>'city' AS city, (body->>'age')::int AS age FROM documents;
