//! Any text as an inventory: every place names a host that is there.

#![no_main]

use host::Inventory;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Inventory::parse(text) {
        Ok(inventory) => {
            assert!(!inventory.hosts.is_empty());
            inventory.place.values().flatten().for_each(|at| drop(&inventory.hosts[*at]));
            assert!(inventory.generators().len() <= inventory.hosts.len());
        }
        Err(why) => assert!(!why.is_empty()),
    }
});
