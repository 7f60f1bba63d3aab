insert into tpcc_warehouse
select {w}, 'warehouse {w}', 'street', 'city', 0.1, 300000;
insert into tpcc_district
select d, {w}, 'district ' || d, 'street', 0.05, 30000, 3001 from generate_series(1, 10) as d;
insert into tpcc_customer
select c, d, {w}, rpad(md5(c::text), 12), 'OE',
    (array['BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'])[no / 100 + 1]
    || (array['BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'])[no / 10 % 10 + 1]
    || (array['BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'])[no % 10 + 1],
    no, 'street', now(), case when c % 10 = 0 then 'BC' else 'GC' end, 50000, (c % 50)::numeric / 100, -10, 10, 1, 0,
    rpad('', 300, 'data ')
from generate_series(1, 10) as d, generate_series(1, 3000) as c,
    lateral (select case when c <= 1000 then c - 1 else c * 7919 % 1000 end as no) as name;
insert into tpcc_history
select c, d, {w}, d, {w}, now(), 10, 'loading' from generate_series(1, 10) as d, generate_series(1, 3000) as c;
insert into tpcc_stock
select i, {w}, i * 31 % 91 + 10, rpad('', 24, 'stock '), 0, 0, 0, rpad('', 40, 'data ')
from generate_series(1, 100000) as i;
insert into tpcc_orders
select o, d, {w}, (o * 1777 + d) % 3000 + 1, now(), case when o <= 2100 then o % 10 + 1 end, o * 13 % 11 + 5
from generate_series(1, 10) as d, generate_series(1, 3000) as o;
insert into tpcc_order_line
select o, d, {w}, n, (o * 8191 + d * 131 + n * 4099) % 100000 + 1, case when o <= 2100 then now() end, 5,
    case when o <= 2100 then 0 else (o * 7 + n * 997) % 999999::numeric / 100 end
from generate_series(1, 10) as d, generate_series(1, 3000) as o, generate_series(1, o * 13 % 11 + 5) as n;
insert into tpcc_new_order
select o, d, {w} from generate_series(1, 10) as d, generate_series(2101, 3000) as o;
