\set w random(1, :scale)
\set carrier random(1, 10)
BEGIN;
SELECT pg_advisory_xact_lock(7433, :w::int);
WITH oldest AS (
    SELECT no_d_id AS d_id, min(no_o_id) AS o_id FROM tpcc_new_order WHERE no_w_id = :w GROUP BY no_d_id
), taken AS (
    DELETE FROM tpcc_new_order USING oldest
    WHERE no_w_id = :w AND no_d_id = d_id AND no_o_id = o_id RETURNING d_id, o_id
), shipped AS (
    UPDATE tpcc_orders AS orders SET o_carrier_id = :carrier FROM taken
    WHERE o_w_id = :w AND o_d_id = taken.d_id AND orders.o_id = taken.o_id
    RETURNING taken.d_id, taken.o_id, o_c_id AS c_id
), dated AS (
    UPDATE tpcc_order_line SET ol_delivery_d = now() FROM taken
    WHERE ol_w_id = :w AND ol_d_id = d_id AND ol_o_id = o_id RETURNING d_id, o_id, ol_amount
), owed AS (
    SELECT d_id, c_id, sum(ol_amount) AS amount FROM shipped JOIN dated USING (d_id, o_id) GROUP BY d_id, c_id
)
UPDATE tpcc_customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1 FROM owed
WHERE c_w_id = :w AND c_d_id = d_id AND tpcc_customer.c_id = owed.c_id \expect rows 0..10
COMMIT;
