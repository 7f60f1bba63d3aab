\set a random(0, 89)
SELECT city, count(*) FROM people WHERE age = :a GROUP BY city;
