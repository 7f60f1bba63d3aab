CREATE TABLE people (id int PRIMARY KEY, name text NOT NULL, city text NOT NULL, age int NOT NULL);
INSERT INTO people SELECT i, 'name ' || i, 'city ' || i % 100, i % 90 FROM generate_series(1, 200000) i;
