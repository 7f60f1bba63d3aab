//! Memory of another process, read and never written: by `/proc/PID/mem`, where that is permitted
//! (ptrace(2), "Ptrace access mode checking").

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// The memory of a process.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    memory: File,
}

impl ProcessMemory {
    /// Opens the memory of a process.
    pub fn open(pid: u32) -> io::Result<ProcessMemory> {
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        Ok(ProcessMemory { pid, memory })
    }

    /// Reads from an address on, as far as memory is mapped there. Returns the number of bytes.
    pub fn read(&self, address: u64, to: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < to.len() {
            match self.memory.read_at(&mut to[done..], address + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if done == 0 && !to.is_empty() {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(done)
        }
    }

    /// Reads a pointer.
    pub fn pointer(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        match self.read(address, &mut bytes)? {
            8 => Ok(u64::from_ne_bytes(bytes)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Address of a symbol that the process's program exports.
    pub fn symbol(&self, name: &str) -> io::Result<u64> {
        let program = fs::read(format!("/proc/{}/exe", self.pid))?;
        let elf = Elf { bytes: &program };
        let value = elf
            .symbol(name)
            .ok_or_else(|| io::Error::other(format!("its program exports no symbol \"{name}\"")))?;
        if !elf.is_position_independent() {
            return Ok(value);
        }
        let target = fs::read_link(format!("/proc/{}/exe", self.pid))?;
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        let target = target.to_string_lossy();
        let base = load_address(&maps, &target)
            .ok_or_else(|| io::Error::other("its program is not mapped from its beginning"))?;
        Ok(base + value)
    }
}

/// Address at which the beginning of a file is mapped, as `/proc/PID/maps` has it.
fn load_address(maps: &str, file: &str) -> Option<u64> {
    let line = maps.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.nth(2).is_some_and(|offset| u64::from_str_radix(offset, 16) == Ok(0))
            && line.ends_with(file)
    })?;
    u64::from_str_radix(line.split('-').next()?, 16).ok()
}

/// An ELF file of 64 bits in this machine's byte order.
struct Elf<'a> {
    bytes: &'a [u8],
}

/// A type of program that can be loaded at any address (`ET_DYN`).
const SHARED_OBJECT: u16 = 3;

/// A section with the symbols that are exported (`SHT_DYNSYM`).
const EXPORTED_SYMBOLS: u32 = 11;

impl Elf<'_> {
    fn symbol(&self, name: &str) -> Option<u64> {
        if self.bytes.get(..5)? != b"\x7fELF\x02" {
            return None;
        }
        let (table, size, count) = (self.u64(0x28)?, u64::from(self.u16(0x3a)?), self.u16(0x3c)?);
        let section = |index: u64| table.checked_add(index.checked_mul(size)?);
        for index in 0..u64::from(count) {
            let header = section(index)?;
            if self.u32(header + 4)? != EXPORTED_SYMBOLS {
                continue;
            }
            let (symbols, length) = (self.u64(header + 0x18)?, self.u64(header + 0x20)?);
            let names = self.u64(section(u64::from(self.u32(header + 0x28)?))? + 0x18)?;
            // An entry of a symbol table has 24 bytes: its name, three small fields, its value.
            for number in 0..length / 24 {
                let symbol = symbols.checked_add(number * 24)?;
                let text = names.checked_add(u64::from(self.u32(symbol)?))?;
                if self.is_text(text, name) {
                    return self.u64(symbol + 8);
                }
            }
        }
        None
    }

    fn is_position_independent(&self) -> bool {
        self.u16(0x10) == Some(SHARED_OBJECT)
    }

    fn is_text(&self, at: u64, text: &str) -> bool {
        let found = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        found.is_some_and(|found| {
            found.starts_with(text.as_bytes()) && found.get(text.len()) == Some(&0)
        })
    }

    fn array<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let at = usize::try_from(at).ok()?;
        self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u16(&self, at: u64) -> Option<u16> {
        self.array(at).map(u16::from_ne_bytes)
    }

    fn u32(&self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_ne_bytes)
    }

    fn u64(&self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_what_it_is() {
        let value: u64 = 0x1234_5678_9abc_def0;
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        assert_eq!(memory.pointer(&raw const value as u64).unwrap(), value);
        assert!(memory.pointer(8).is_err(), "nothing is mapped there");
        assert!(memory.symbol("no such symbol").is_err());
    }

    #[test]
    fn a_program_is_found_where_it_begins() {
        let maps =
            "55d0-55d9 r--p 00001000 08:01 7 /bin/x\n55c0-55d0 r--p 00000000 08:01 7 /bin/x\n";
        assert_eq!(load_address(maps, "/bin/x"), Some(0x55c0));
        assert_eq!(load_address(maps, "/bin/y"), None);
    }

    #[test]
    fn any_bytes_are_no_reason_to_panic() {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        bytes.truncate(100_000);
        for at in 0..64 {
            bytes[at] ^= 0xff;
            let _ = Elf { bytes: &bytes }.symbol("main");
            bytes[at] ^= 0xff;
        }
        assert_eq!(Elf { bytes: b"\x7fELF\x02" }.symbol("main"), None);
    }
}
