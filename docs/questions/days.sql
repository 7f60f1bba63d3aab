SELECT customer, count(DISTINCT day), sum(total) FROM orders
    GROUP BY customer ORDER BY 2 DESC, 3 DESC LIMIT 10;
