SELECT format('item %s is %s, and the log has %s', id, quote_nullable(note), coalesce(seq::text, 'no change of it'))
    FROM items LEFT JOIN (SELECT id, max(seq) AS seq FROM writes_log GROUP BY id) AS log USING (id)
    WHERE note IS DISTINCT FROM coalesce('changed ' || seq, 'item ' || id)
UNION ALL SELECT format('%s items, and the last one is %s', count(*), max(id)) FROM items HAVING count(*) IS DISTINCT FROM max(id);
