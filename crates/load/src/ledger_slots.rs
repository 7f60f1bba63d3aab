//! The variables by which a script numbers its transactions in the ledger.

use script::VariableSlot;

/// The variables that a script writes into the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LedgerSlots {
    pub(crate) client: VariableSlot,
    pub(crate) seq: VariableSlot,
    pub(crate) chain: VariableSlot,
    /// The client of a row that the transaction has read, if the script says so.
    pub(crate) read_client: VariableSlot,
    /// The number of that row's transaction.
    pub(crate) read_seq: VariableSlot,
    /// 0 or false where the script says that the transaction has written nothing.
    pub(crate) wrote: VariableSlot,
}

impl LedgerSlots {
    /// None where no script numbers its transactions.
    pub(crate) fn of(names: &mut script::VariableNames) -> Option<LedgerSlots> {
        let seq = names.slot("ledger_seq")?;
        let (client, chain) = (names.intern("ledger_client"), names.intern("ledger_chain"));
        // A script only sets them.
        let (read_client, read_seq) =
            (names.intern("ledger_read_client"), names.intern("ledger_read_seq"));
        let wrote = names.intern("ledger_wrote");
        Some(LedgerSlots { client, seq, chain, read_client, read_seq, wrote })
    }
}
