\set w random(1, :scale)
\set d random(1, 10)
\set c ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
BEGIN;
SELECT c_balance, c_first, c_middle, c_last FROM tpcc_customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c \expect rows 1
SELECT coalesce(max(o_id), 0) AS o FROM tpcc_orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c \gset
SELECT ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM tpcc_order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o \expect rows 0..15
COMMIT;
