insert into tpcc_item
select i, i % 10000 + 1, 'item ' || i, (i * 7919 % 9901 + 100)::numeric / 100, rpad('data of item ' || i, 40, '.')
from generate_series(1, 100000) as i;
