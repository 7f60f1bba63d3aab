//! `--check`: conditions that the tables must fulfil after a run, and sums that change together in it.

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::{Origin, RunOptions, Script};
use crate::server::Server;
use script::BuiltinScript;

/// A condition: its name, and a query that counts what violates it.
struct Condition {
    name: &'static str,
    violations: &'static str,
}

/// Conditions that pgbench's own transactions keep, beside their sums.
const TPCB: &[Condition] = &[Condition {
    name: "each entry of the history has its account, teller and branch",
    violations: "select count(*) from pgbench_history as history where not exists (select from \
                 pgbench_accounts as account where account.aid = history.aid) or not exists \
                 (select from pgbench_tellers as teller where teller.tid = history.tid) or not exists \
                 (select from pgbench_branches as branch where branch.bid = history.bid)",
}];

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

/// Sums over pgbench's tables, of one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    accounts: i128,
    tellers: i128,
    branches: i128,
    history: i128,
}

const SUMS: &str = "select concat_ws(' ', (select coalesce(sum(abalance), 0) from pgbench_accounts), \
                    (select coalesce(sum(tbalance), 0) from pgbench_tellers), (select \
                    coalesce(sum(bbalance), 0) from pgbench_branches), (select coalesce(sum(delta), 0) \
                    from pgbench_history))";

impl Sums {
    /// The sums before the first transaction, where they will be compared with those after the last one: the
    /// history has been emptied by then, if it is.
    pub(super) fn before(
        options: &RunOptions,
        server: &mut Server,
    ) -> Result<Option<Sums>, Complaint> {
        match options.ours.check && are_known(options) && ran(options, Origin::Builtin) {
            true => Sums::now(server).map(Some),
            false => Ok(None),
        }
    }

    fn now(server: &mut Server) -> Result<Sums, Complaint> {
        let text = server.value(SUMS)?.unwrap_or_default(); // No value is no four numbers.
        let numbers: Vec<i128> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [accounts, tellers, branches, history] => {
                Ok(Sums { accounts, tellers, branches, history })
            }
            _ => Err(Complaint::error(format_args!(
                "could not compare the sums of pgbench's tables: the server gave \"{text}\""
            ))),
        }
    }

    fn less(self, before: Sums) -> Sums {
        Sums {
            accounts: self.accounts - before.accounts,
            tellers: self.tellers - before.tellers,
            branches: self.branches - before.branches,
            history: self.history - before.history,
        }
    }

    /// What the changes of the sums have to be, whichever of these scripts ran how often: each condition,
    /// and how it is violated where it is.
    fn conditions(self, moves: Moves) -> Vec<(&'static str, Option<String>)> {
        let Sums { accounts, tellers, branches, history } = self;
        let differ = |one: i128, other: i128| {
            (one != other).then(|| format!("they changed by {one} and by {other}"))
        };
        let mut all =
            vec![("sum(abalance) changes as sum(delta) of the history", differ(accounts, history))];
        match moves {
            Moves::All => all.extend([
                ("sum(tbalance) changes as sum(delta) of the history", differ(tellers, history)),
                ("sum(bbalance) changes as sum(delta) of the history", differ(branches, history)),
            ]),
            Moves::Accounts => all.extend([
                ("sum(tbalance) does not change", differ(tellers, 0)),
                ("sum(bbalance) does not change", differ(branches, 0)),
            ]),
            Moves::Some => {
                all.push(("sum(tbalance) changes as sum(bbalance)", differ(tellers, branches)));
            }
        }
        all
    }
}

/// What the scripts of a run change beside accounts and history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    /// Each transaction that changes anything changes a teller and a branch.
    All,
    /// None does (`-N`, `-S`).
    Accounts,
    /// Some do.
    Some,
}

impl Moves {
    fn of(options: &RunOptions) -> Moves {
        let has = |name| options.scripts.iter().any(|script| is_builtin(script, name));
        match (has("tpcb-like"), has("simple-update")) {
            (true, false) => Moves::All,
            (false, _) => Moves::Accounts,
            (true, true) => Moves::Some,
        }
    }
}

fn is_builtin(script: &Script, name: &str) -> bool {
    let builtin = BuiltinScript::find(name);
    script.origin == Origin::Builtin && builtin.is_ok_and(|one| one.text == script.text)
}

fn ran(options: &RunOptions, origin: Origin) -> bool {
    options.scripts.iter().any(|script| script.origin == origin)
}

/// True if no script of the user's own ran: what those change is not known.
fn are_known(options: &RunOptions) -> bool {
    !ran(options, Origin::File)
}

/// Checks the tables of the built-in scripts that ran, and says what does not hold; true if all holds that
/// could be judged. `before` are the sums before the first transaction.
pub(super) fn check(
    options: &RunOptions,
    before: Option<Sums>,
    server: &mut Server,
    console: &mut Console<'_>,
) -> Result<bool, Complaint> {
    if !are_known(options) {
        let why = "not judged: what scripts of your own change is not known";
        console.lines(&format!("pgrig: {:<18} {why}\n", "check"));
        return Ok(true);
    }
    let sets = [(Origin::Builtin, TPCB), (Origin::Tpcc, TPCC)];
    let (mut count, mut violated) = (0, Vec::new());
    if let Some(before) = before {
        for (name, why) in Sums::now(server)?.less(before).conditions(Moves::of(options)) {
            count += 1;
            violated.extend(why.map(|why| format!("{name} ({why})")));
        }
    }
    for condition in
        sets.into_iter().filter(|(origin, _)| ran(options, *origin)).flat_map(|(_, set)| set)
    {
        count += 1;
        let found = server.value(condition.violations)?.unwrap_or_default(); // No value is not "0".
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_change_together_and_say_where_they_do_not() {
        let check = |[accounts, tellers, branches, history]: [i128; 4], moves, violated: usize| {
            let sums = Sums { accounts, tellers, branches, history };
            let conditions = sums.conditions(moves);
            let found = conditions.iter().filter(|(_, why)| why.is_some()).count();
            assert_eq!(found, violated, "{sums:?} {moves:?}: {conditions:?}");
        };
        check([7, 7, 7, 7], Moves::All, 0);
        check([7, 7, 7, 0], Moves::All, 3);
        check([7, 6, 7, 7], Moves::All, 1);
        check([7, 0, 0, 7], Moves::Accounts, 0);
        check([7, 0, 0, 7], Moves::All, 2);
        check([7, 1, 0, 7], Moves::Accounts, 1);
        check([7, 3, 3, 7], Moves::Some, 0);
        check([7, 3, 2, 7], Moves::Some, 1);
    }
}
