drop table if exists tpcc_warehouse, tpcc_district, tpcc_customer, tpcc_history, tpcc_new_order, tpcc_orders,
    tpcc_order_line, tpcc_item, tpcc_stock;
create table tpcc_warehouse (w_id int not null, w_name text not null, w_street text not null, w_city text not null,
    w_tax numeric(4,4) not null, w_ytd numeric(14,2) not null) with (fillfactor = 10);
create table tpcc_district (d_id int not null, d_w_id int not null, d_name text not null, d_street text not null,
    d_tax numeric(4,4) not null, d_ytd numeric(14,2) not null, d_next_o_id int not null) with (fillfactor = 10);
create table tpcc_customer (c_id int not null, c_d_id int not null, c_w_id int not null, c_first text not null,
    c_middle text not null, c_last text not null, c_last_no int not null, c_street text not null,
    c_since timestamptz not null, c_credit text not null, c_credit_lim numeric(12,2) not null,
    c_discount numeric(4,4) not null, c_balance numeric(14,2) not null, c_ytd_payment numeric(14,2) not null,
    c_payment_cnt int not null, c_delivery_cnt int not null, c_data text not null);
create table tpcc_history (h_c_id int not null, h_c_d_id int not null, h_c_w_id int not null, h_d_id int not null,
    h_w_id int not null, h_date timestamptz not null, h_amount numeric(8,2) not null, h_data text not null);
create table tpcc_new_order (no_o_id int not null, no_d_id int not null, no_w_id int not null);
create table tpcc_orders (o_id int not null, o_d_id int not null, o_w_id int not null, o_c_id int not null,
    o_entry_d timestamptz not null, o_carrier_id int, o_ol_cnt int not null);
create table tpcc_order_line (ol_o_id int not null, ol_d_id int not null, ol_w_id int not null,
    ol_number int not null, ol_i_id int not null, ol_delivery_d timestamptz, ol_quantity int not null,
    ol_amount numeric(8,2) not null);
create table tpcc_item (i_id int not null, i_im_id int not null, i_name text not null,
    i_price numeric(5,2) not null, i_data text not null);
create table tpcc_stock (s_i_id int not null, s_w_id int not null, s_quantity int not null, s_dist text not null,
    s_ytd bigint not null, s_order_cnt int not null, s_remote_cnt int not null, s_data text not null);
