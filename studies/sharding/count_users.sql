SELECT sum(n) FROM count_users() AS n;
