-- The same bank transfer in one call. The balance is read last, and the history carries the
-- transaction's time, as in the published function.
CREATE FUNCTION transfer(account int, branch int, teller int, amount int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    balance int;
BEGIN
    UPDATE pgbench_accounts SET abalance = abalance + amount WHERE aid = account;
    UPDATE pgbench_tellers SET tbalance = tbalance + amount WHERE tid = teller;
    UPDATE pgbench_branches SET bbalance = bbalance + amount WHERE bid = branch;
    INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
        VALUES (teller, branch, account, amount, CURRENT_TIMESTAMP);
    SELECT abalance INTO balance FROM pgbench_accounts WHERE aid = account;
    RETURN balance;
END
$$;
