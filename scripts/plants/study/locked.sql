SELECT format('row %s was changed %s times, and the log has %s', id, n, count)
    FROM (SELECT id, count(*) FROM locked_log GROUP BY id) AS log LEFT JOIN locked USING (id)
    WHERE n IS DISTINCT FROM count;
