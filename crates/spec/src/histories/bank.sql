-- Eight accounts of 100: all are read at once, or money goes from one to another, by reading both
-- balances and writing them.
\set from random(0, 7)
\set to (:from + random(1, 7)) % 8
\set amount random(1, 5)
\if random(0, 1) = 0
-- \history accounts 800
SELECT array_agg(balance) FROM history_accounts;
\else
BEGIN;
SELECT balance AS old_from FROM history_accounts WHERE id = :from \gset
SELECT balance AS old_to FROM history_accounts WHERE id = :to \gset
\set new_from :old_from - :amount
\set new_to :old_to + :amount
UPDATE history_accounts SET balance = :new_from WHERE id = :from;
UPDATE history_accounts SET balance = :new_to WHERE id = :to;
COMMIT;
\endif
