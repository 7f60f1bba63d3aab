\set w random(1, :scale)
\set d random(1, 10)
\set c ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set lines random(5, 15)
\set seed random(1, 1000000000)
\set fate random(1, 100)
BEGIN;
SELECT w_tax FROM tpcc_warehouse WHERE w_id = :w \expect rows 1
SELECT c_discount, c_last, c_credit FROM tpcc_customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c \expect rows 1
UPDATE tpcc_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d RETURNING d_next_o_id - 1 AS o \gset
WITH drawn AS (
    SELECT hashint8extended(n, :seed) & 4503599627370495 AS h FROM generate_series(1, :lines::int) AS n
), picked AS (
    SELECT DISTINCT (((h & 8191) | ((h >> 13) % 100000 + 1)) % 100000 + 1)::int AS i_id FROM drawn
), line AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY i_id) AS number, i_id, i_id % 10 + 1 AS quantity,
           (i_id % 10 + 1) * i_price AS amount
    FROM picked JOIN tpcc_item USING (i_id)
), locked AS MATERIALIZED (
    SELECT s_i_id FROM tpcc_stock WHERE s_w_id = :w AND s_i_id IN (SELECT i_id FROM picked)
    ORDER BY s_i_id FOR NO KEY UPDATE
), taken AS (
    UPDATE tpcc_stock AS stock
    SET s_quantity = CASE WHEN s_quantity >= quantity + 10 THEN s_quantity - quantity
                          ELSE s_quantity - quantity + 91 END,
        s_ytd = s_ytd + quantity, s_order_cnt = s_order_cnt + 1
    FROM locked JOIN line ON line.i_id = locked.s_i_id
    WHERE stock.s_w_id = :w AND stock.s_i_id = locked.s_i_id
), ordered AS (
    INSERT INTO tpcc_order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_quantity, ol_amount)
    SELECT :o, :d, :w, number, i_id, quantity, amount FROM line
), queued AS (
    INSERT INTO tpcc_new_order (no_o_id, no_d_id, no_w_id) VALUES (:o, :d, :w)
)
INSERT INTO tpcc_orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt)
SELECT :o, :d, :w, :c, now(), count(*) FROM line \expect rows 1
\if :fate = 1
ROLLBACK;
\else
COMMIT;
\endif
