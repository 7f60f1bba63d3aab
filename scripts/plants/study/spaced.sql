SELECT format('row %s bears %s, the log has %s', id, d.seq, log.seq)
    FROM (SELECT id, max(seq) AS seq FROM writes_log GROUP BY id) AS log LEFT JOIN spaced AS d USING (id)
    WHERE d.seq IS DISTINCT FROM log.seq;
