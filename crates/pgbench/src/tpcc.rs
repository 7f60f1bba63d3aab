//! `-b tpcc-like`: five transactions over the tables of an order-entry company, modelled on TPC-C.
//!
//! It is like TPC-C and is not TPC-C: clients do not think or type, each works for any warehouse, and all
//! customers and stock are of the home warehouse. Scale is the number of warehouses. The tables are named
//! `tpcc_…`, so that `-i` touches no table of the user's.

use std::time::Instant;

use crate::complaint::Complaint;
use crate::console::Console;
use crate::options::InitialiseOptions;
use crate::server::Server;

/// The name that `-b` knows it by.
pub(crate) const NAME: &str = "tpcc-like";

/// A transaction of the mix.
pub(crate) struct Transaction {
    /// The name in reports.
    pub(crate) description: &'static str,
    pub(crate) text: &'static str,
    /// Its share of 100.
    pub(crate) weight: u32,
}

/// The mix of TPC-C's clause 5.2.3.
pub(crate) const MIX: [Transaction; 5] = [
    Transaction {
        description: "<builtin: TPC-C-like new order>",
        text: include_str!("tpcc/new-order.sql"),
        weight: 45,
    },
    Transaction {
        description: "<builtin: TPC-C-like payment>",
        text: include_str!("tpcc/payment.sql"),
        weight: 43,
    },
    Transaction {
        description: "<builtin: TPC-C-like order status>",
        text: include_str!("tpcc/order-status.sql"),
        weight: 4,
    },
    Transaction {
        description: "<builtin: TPC-C-like delivery>",
        text: include_str!("tpcc/delivery.sql"),
        weight: 4,
    },
    Transaction {
        description: "<builtin: TPC-C-like stock level>",
        text: include_str!("tpcc/stock-level.sql"),
        weight: 4,
    },
];

/// Tables that are vacuumed before a run: the small ones, whose rows change most.
pub(crate) const VACUUMED: [&str; 3] =
    ["vacuum tpcc_warehouse", "vacuum tpcc_district", "vacuum tpcc_new_order"];

/// The text that `--show-script` prints.
pub(crate) fn show() -> String {
    let one = |part: &Transaction| {
        format!("-- {NAME}: {} @{}\n{}\n", part.description, part.weight, part.text)
    };
    MIX.iter().map(one).collect()
}

/// Creates and fills the tables in one transaction, then vacuums them.
pub(crate) fn load(
    options: &InitialiseOptions,
    server: &mut Server,
    console: &mut Console<'_>,
) -> Result<(), Complaint> {
    let began = Instant::now();
    console.narrate("creating tables and generating data (server-side)...");
    server.execute("begin")?;
    let parts = [include_str!("tpcc/tables.sql"), include_str!("tpcc/items.sql")];
    parts.iter().try_for_each(|sql| server.execute(sql))?;
    for warehouse in 1..=options.scale {
        let number = warehouse.to_string();
        server.execute(&include_str!("tpcc/warehouse.sql").replace("{w}", &number))?;
        console.share(f64::from(warehouse) / f64::from(options.scale));
        let text = format!("{warehouse} of {} warehouses done", options.scale);
        match console.err_is_terminal {
            true => console.live(&text),
            false => console.narrate(text),
        }
    }
    console.wipe();
    console.narrate("creating primary keys...");
    server.execute(include_str!("tpcc/keys.sql"))?;
    server.execute("commit")?;
    // Notices of tables that were not there.
    server.take_notices();
    console.narrate("vacuuming...");
    for table in TABLES {
        server.execute(&format!("vacuum analyze tpcc_{table}"))?;
    }
    console.narrate(format_args!("done in {:.2} s.", began.elapsed().as_secs_f64()));
    Ok(())
}

const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "new_order",
    "orders",
    "order_line",
    "item",
    "stock",
];
