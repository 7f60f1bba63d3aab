-- The same bank transfer in one call, in the published shape. The balance is read last, and the
-- history carries the transaction's time.
CREATE FUNCTION transfer(account int, branch int, teller int, amount int) RETURNS SETOF int
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pgbench_accounts SET abalance = abalance + amount WHERE aid = account;
    UPDATE pgbench_tellers SET tbalance = tbalance + amount WHERE tid = teller;
    UPDATE pgbench_branches SET bbalance = bbalance + amount WHERE bid = branch;
    INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
        VALUES (teller, branch, account, amount, CURRENT_TIMESTAMP);
    RETURN QUERY SELECT abalance FROM pgbench_accounts WHERE aid = account;
END
$$;
