ALTER TABLE orders SET (fillfactor = 80);
VACUUM FULL orders;
