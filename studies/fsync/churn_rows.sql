-- The table that the last transaction made has its rows: all of them, or those that are left.
SELECT format('%s rows of %s to %s, and the ledger has %s', rows, least, most, seq)
    FROM (SELECT count(*) AS rows, min(seq) AS least, max(seq) AS most FROM churn) AS made, churn_state
    WHERE (least, most) IS DISTINCT FROM (seq, seq) OR rows NOT IN (200, 2000);
