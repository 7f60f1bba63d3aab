\set w random(1, :scale)
\set d random(1, 10)
\set c ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set last (random(0, 255) | random(0, 999)) % 1000
\set by random(1, 100)
\set cents random(100, 500000)
BEGIN;
UPDATE tpcc_warehouse SET w_ytd = w_ytd + :cents::numeric / 100 WHERE w_id = :w RETURNING w_name \expect rows 1
UPDATE tpcc_district SET d_ytd = d_ytd + :cents::numeric / 100 WHERE d_w_id = :w AND d_id = :d RETURNING d_name \expect rows 1
\if :by <= 60
SELECT coalesce((array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2], :c::int) AS c FROM tpcc_customer WHERE c_w_id = :w AND c_d_id = :d AND c_last_no = :last \gset
\endif
UPDATE tpcc_customer SET c_balance = c_balance - :cents::numeric / 100, c_ytd_payment = c_ytd_payment + :cents::numeric / 100, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c RETURNING c_balance \expect rows 1
INSERT INTO tpcc_history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (:c, :d, :w, :d, :w, now(), :cents::numeric / 100, 'payment');
COMMIT;
