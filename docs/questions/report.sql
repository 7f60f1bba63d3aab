SELECT c.region, o.day, sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer
    GROUP BY c.region, o.day ORDER BY 3 DESC LIMIT 10;
