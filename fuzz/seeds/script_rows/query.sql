SELECT id, name FROM t WHERE name <> ';' -- $1
ORDER BY 1;
