SELECT format('item %s bears %s, and the log has %s', id, hot_items.seq, log.seq)
    FROM hot_items LEFT JOIN (SELECT id, max(seq) AS seq FROM writes_log GROUP BY id) AS log USING (id)
    WHERE hot_items.seq IS DISTINCT FROM coalesce(log.seq, 0)
UNION ALL SELECT format('%s items, and the last one is %s', count(*), max(id)) FROM hot_items HAVING count(*) IS DISTINCT FROM max(id);
