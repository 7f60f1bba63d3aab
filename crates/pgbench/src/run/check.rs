//! `--check`: conditions that the tables must fulfil after a run, whatever ran.

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::{Origin, RunOptions};
use crate::server::Server;

/// A condition: its name, and a query that counts what violates it.
struct Condition {
    name: &'static str,
    violations: &'static str,
}

/// Conditions that pgbench's own transactions keep.
const TPCB: &[Condition] = &[
    Condition {
        name: "the balance of each branch is the sum of its tellers'",
        violations: "select count(*) from pgbench_branches as branch where bbalance <> (select \
                     coalesce(sum(tbalance), 0) from pgbench_tellers as teller where teller.bid = branch.bid)",
    },
    Condition {
        name: "each entry of the history has its account, teller and branch",
        violations: "select count(*) from pgbench_history as history where not exists (select from \
                     pgbench_accounts as account where account.aid = history.aid) or not exists \
                     (select from pgbench_tellers as teller where teller.tid = history.tid) or not exists \
                     (select from pgbench_branches as branch where branch.bid = history.bid)",
    },
];

/// TPC-C's consistency conditions (clause 3.3.2), but for those of the initial data alone.
const TPCC: &[Condition] = &[
    Condition {
        name: "1: w_ytd = sum(d_ytd)",
        violations: "select count(*) from tpcc_warehouse where w_ytd <> (select sum(d_ytd) from \
                     tpcc_district where d_w_id = w_id)",
    },
    Condition {
        name: "2: d_next_o_id - 1 = max(o_id) = max(no_o_id)",
        violations: "select count(*) from tpcc_district where d_next_o_id - 1 <> (select max(o_id) from \
                     tpcc_orders where o_w_id = d_w_id and o_d_id = d_id) or d_next_o_id - 1 <> (select \
                     max(no_o_id) from tpcc_new_order where no_w_id = d_w_id and no_d_id = d_id)",
    },
    Condition {
        name: "3: max(no_o_id) - min(no_o_id) + 1 = count(new_order)",
        violations: "select count(*) from (select from tpcc_new_order group by no_w_id, no_d_id having \
                     max(no_o_id) - min(no_o_id) + 1 <> count(*)) as district",
    },
    Condition {
        name: "4: sum(o_ol_cnt) = count(order_line)",
        violations: "select count(*) from (select o_w_id as w, o_d_id as d, sum(o_ol_cnt) as n from \
                     tpcc_orders group by 1, 2) as orders full join (select ol_w_id as w, ol_d_id as d, \
                     count(*) as n from tpcc_order_line group by 1, 2) as lines using (w, d) where \
                     orders.n is distinct from lines.n",
    },
    Condition {
        name: "5: o_carrier_id is null if and only if the order is in new_order",
        violations: "select count(*) from tpcc_orders full join tpcc_new_order on no_w_id = o_w_id and \
                     no_d_id = o_d_id and no_o_id = o_id where (o_carrier_id is null) <> (no_o_id is not \
                     null) or o_id is null",
    },
    Condition {
        name: "6: o_ol_cnt = count(order_line) of each order",
        violations: "select count(*) from tpcc_orders full join (select ol_w_id, ol_d_id, ol_o_id, \
                     count(*) as n from tpcc_order_line group by 1, 2, 3) as lines on ol_w_id = o_w_id and \
                     ol_d_id = o_d_id and ol_o_id = o_id where o_ol_cnt is distinct from n",
    },
    Condition {
        name: "7: ol_delivery_d is null if and only if o_carrier_id is null",
        violations: "select count(*) from tpcc_order_line join tpcc_orders on o_w_id = ol_w_id and \
                     o_d_id = ol_d_id and o_id = ol_o_id where (ol_delivery_d is null) <> (o_carrier_id is \
                     null)",
    },
    Condition {
        name: "8: w_ytd = sum(h_amount)",
        violations: "select count(*) from tpcc_warehouse where w_ytd <> (select sum(h_amount) from \
                     tpcc_history where h_w_id = w_id)",
    },
    Condition {
        name: "9: d_ytd = sum(h_amount)",
        violations: "select count(*) from tpcc_district join (select h_w_id, h_d_id, sum(h_amount) as paid \
                     from tpcc_history group by 1, 2) as history on h_w_id = d_w_id and h_d_id = d_id where \
                     d_ytd <> paid",
    },
    Condition {
        name: "10: c_balance = sum(ol_amount delivered) - sum(h_amount)",
        violations: "select count(*) from tpcc_customer left join (select o_w_id, o_d_id, o_c_id, \
                     sum(ol_amount) as owed from tpcc_orders join tpcc_order_line on ol_w_id = o_w_id and \
                     ol_d_id = o_d_id and ol_o_id = o_id where ol_delivery_d is not null group by 1, 2, 3) \
                     as delivered on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id left join \
                     (select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as paid from tpcc_history group by \
                     1, 2, 3) as history on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id where \
                     c_balance <> coalesce(owed, 0) - coalesce(paid, 0)",
    },
    Condition {
        name: "12: c_balance + c_ytd_payment = sum(ol_amount delivered)",
        violations: "select count(*) from tpcc_customer left join (select o_w_id, o_d_id, o_c_id, \
                     sum(ol_amount) as owed from tpcc_orders join tpcc_order_line on ol_w_id = o_w_id and \
                     ol_d_id = o_d_id and ol_o_id = o_id where ol_delivery_d is not null group by 1, 2, 3) \
                     as delivered on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id where c_balance \
                     + c_ytd_payment <> coalesce(owed, 0)",
    },
];

/// Checks the tables of the built-in scripts that ran, and says what does not hold; true if all holds.
pub(super) fn check(
    options: &RunOptions,
    server: &mut Server,
    console: &mut Console<'_>,
) -> Result<bool, Complaint> {
    let ran = |origin| options.scripts.iter().any(|script| script.origin == origin);
    let sets = [(Origin::Builtin, TPCB), (Origin::Tpcc, TPCC)];
    let (mut count, mut violated) = (0, Vec::new());
    for condition in sets.into_iter().filter(|(origin, _)| ran(*origin)).flat_map(|(_, set)| set) {
        count += 1;
        let found = server.value(condition.violations)?.unwrap_or_default();
        if found != "0" {
            violated.push(format!("{} (violated {found} times)", condition.name));
        }
    }
    let held = count - violated.len();
    console.lines(&format!("pgrig: {:<18} {held} of {count} conditions hold\n", "check"));
    for condition in &violated {
        console.error(format_args!("the tables are not consistent: {condition}"));
    }
    Ok(violated.is_empty())
}
